# SPDX-License-Identifier: GPL-2.0-only
"""The manual page and completions: made from the tables of options, and read by the programs that they are for."""
import re
import shutil
import subprocess

from harness import limit, one_line_error

BESIDE_OTHERS = True

COMMANDS = ("record", "report", "compare", "export", "doctor", "daemon", "top", "dump")


def text_of(ctx, *arguments):
    done = ctx.run(ctx.whyidle, *arguments)
    assert done.status == 0 and not done.err, done
    return done.out


def options_of(ctx, command):
    """Long options as --help-all shows them."""
    return set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text_of(ctx, command, "--help-all"), re.M))


def check_examples(ctx, lines):
    """Those among the lines; each option in them is one. Returns how many there are."""
    examples = [line for line in lines if re.match(r"(sudo )?whyidle \w+ .* # ", line)]
    for line in examples:
        command = re.search(r"whyidle (\w+)", line)[1]
        for option in re.findall(r" (--[\w-]{2,})", line):
            assert option in options_of(ctx, command), line
    return len(examples)


def test_help_fits_a_screen(ctx):
    lines = text_of(ctx, "--help").splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 110, lines
    assert check_examples(ctx, lines) >= 5, lines
    for command in COMMANDS:
        text = text_of(ctx, command, "--help")
        lines = text.splitlines()
        assert len(lines) <= 40 and max(map(len, lines)) <= 110, (command, len(lines))
        missing = [option for option in options_of(ctx, command) if option not in text]
        assert missing in ([], ["--help-all"]), (command, missing)
    for command in ("record", "report"):
        assert check_examples(ctx, text_of(ctx, command, "--help").splitlines()) >= 3, command


@limit(60)
def test_page_names_every_option(ctx):
    page = text_of(ctx, "manual")
    with open(ctx.path("whyidle.1"), "w", encoding="utf-8") as file:
        file.write(page)
    plain = page.replace("\\-", "-")
    for command in COMMANDS:
        part = plain[plain.index(f".SS whyidle {command} "):].split("\n.SS ")[0]
        missing = [option for option in options_of(ctx, command) if option not in part]
        assert not missing, (command, missing)
    if shutil.which("groff"):
        done = ctx.run("groff", "-man", "-ww", "-Tutf8", ctx.path("whyidle.1"))
        assert done.status == 0 and not done.err, done.err
        assert "--user-stacks" in re.sub(r"\x1b\[\d*m|.\x08", "", done.out).replace("−", "-")


def complete(ctx, *words):
    """What bash offers for the last word."""
    script = """source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _whyidle; printf '%s\\n' "${COMPREPLY[@]}" """
    done = ctx.run("bash", "--norc", "-c", script, "bash", ctx.path("completion"), "whyidle", *words)
    assert done.status == 0 and not done.err, done
    return set(done.out.split())


@limit(60)
def test_bash_completes(ctx):
    with open(ctx.path("completion"), "w", encoding="utf-8") as file:
        file.write(text_of(ctx, "completion", "bash"))
    assert set(COMMANDS) < complete(ctx, ""), complete(ctx, "")
    assert complete(ctx, "rec") == {"record"}
    for command in COMMANDS:
        assert complete(ctx, command, "--") == options_of(ctx, command), command
    assert complete(ctx, "record", "--no-r") == {"--no-report"}
    assert complete(ctx, "record", "--uprobes", "a") == {"auto", "always"}
    assert complete(ctx, "export", "--format", "p") == {"perfetto", "pprof"}
    assert complete(ctx, "export", "-f", "") <= {"chrome", "sqlite", "perfetto", "pprof", "folded", ""}
    open(ctx.path("a.whyidle"), "w", encoding="utf-8").close()
    assert complete(ctx, "report", "a.w") == {"a.whyidle"}
    assert complete(ctx, "record", "-o", "a.w") == {"a.whyidle"}
    assert complete(ctx, "record", "--duration", "") == set()
    assert complete(ctx, "record", "--", "a.w", "a.w") == {"a.whyidle"}
    assert "--json" not in complete(ctx, "record", "--", "tool", "--j"), "what follows -- is another program's"
    one_line_error(ctx.run(ctx.whyidle, "completion", "fish"), 2, "bash or zsh")


def test_zsh_script(ctx):
    script = text_of(ctx, "completion", "zsh")
    assert script.startswith("#compdef whyidle\n")
    for command in COMMANDS:
        part = script[script.index(f"\n\t{command})\n"):].split(";;")[0]
        missing = [option for option in options_of(ctx, command) if f"{option}[" not in part]
        assert not missing, (command, missing)
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-n", "-c", script], check=True, timeout=30)
