# SPDX-License-Identifier: GPL-2.0-only
"""What goes wrong on real machines: each case ends in one clear line, or in a recording that says what it lacks."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib

from harness import (CAP_BPF, CAP_PERFMON, CAP_SYSLOG, NOBODY, alone, cause_key, check_report, end_process, grant_capabilities,
                     limit, needs, one_line_error, says, wait_until)
from terminal import Terminal

BESIDE_OTHERS = True

AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
QUIET = ("-q", "--no-report")


def kernel_time(report):
    return sum(gpu["busy_ns"] for gpu in report["gpus"])


# ---- privileges ----

def public_copy(ctx):
    """The program where another user can reach it."""
    os.chmod(ctx.folder, 0o777)
    return shutil.copy(ctx.whyidle, ctx.path("whyidle"))


def public_sim(ctx, name):
    """A workload where another user can reach it: the checkout may lie in root's home."""
    os.chmod(ctx.folder, 0o777)
    shutil.copytree(ctx.build / "sim" / "lib", ctx.path("lib"), symlinks=True)
    return shutil.copy(ctx.sim(name), ctx.path(name))


@needs("root")
def test_no_root(ctx):
    whyidle = public_copy(ctx)
    done = ctx.run(*AS_NOBODY, whyidle, "record", "-o", ctx.path("s.whyidle"), "--", "true")
    one_line_error(done, 1, "BPF|bpf|privilege|capabilit", "sudo|root|setcap")
    assert not os.path.exists(ctx.path("s.whyidle"))


@alone
@needs("root")
def test_no_root_without_bpf_gives_a_timeline(ctx):
    whyidle = public_copy(ctx)
    done = ctx.run(*AS_NOBODY, whyidle, "record", "--no-bpf", *QUIET, "-o", ctx.path("s.whyidle"), "--",
                   public_sim(ctx, "healthy"), "--seconds", "0.5")
    assert done.status == 0, done
    report = ctx.report("s.whyidle")
    assert kernel_time(report) > 300e6, report["gpus"]
    assert any("no-bpf" in line for line in report["degraded"]), report["degraded"]
    assert report["gpus"][0]["top_gaps"][0]["ended_by"]["comm"] == "healthy", report["gpus"][0]["top_gaps"][0]
    for cause in report["gpus"][0]["causes"]:
        assert not cause["code"].startswith(("wait.", "sched.")), f"{cause['code']} was named without BPF"


@alone
@needs("root", "bpf")
def test_file_capabilities_are_enough(ctx):
    whyidle = public_copy(ctx)
    grant_capabilities(whyidle, (CAP_BPF, CAP_PERFMON, CAP_SYSLOG))
    done = ctx.run(*AS_NOBODY, whyidle, "record", *QUIET, "-o", ctx.path("s.whyidle"), "--",
                   public_sim(ctx, "lock_wait"), "--seconds", "1", "--truth", ctx.path("truth.json"))
    assert done.status == 0, done
    gpu, = ctx.report("s.whyidle")["gpus"]
    assert "wait.lock@launcher" in [cause_key(c) for c in gpu["causes"]], gpu["causes"]
    # The loader takes such variables out of the environment of a program with capabilities: the command needs them.
    done = ctx.run(*AS_NOBODY, "env", "LD_LIBRARY_PATH=/opt/of/the/user", whyidle, "record", *QUIET, "-o",
                   ctx.path("t.whyidle"), "--", "sh", "-c", "echo $LD_LIBRARY_PATH; grep CapEff /proc/self/status")
    assert done.out.splitlines()[0] == "/opt/of/the/user", done
    assert done.out.splitlines()[1].split()[1].strip("0") == "", f"the command got our capabilities: {done}"


@needs("root")
def test_no_capabilities(ctx):
    done = ctx.run("setpriv", "--bounding-set=-all", ctx.whyidle, "record", "-o", ctx.path("s.whyidle"), "--", "true")
    one_line_error(done, 1, "BPF|bpf|capabilit")


@needs("root")
def test_doctor_without_capabilities(ctx):
    done = ctx.run("setpriv", "--bounding-set=-all", ctx.whyidle, "doctor", "--json")
    assert done.status == 1, done
    checks = {check["name"]: check for check in json.loads(done.out)["checks"]}
    assert checks["bpf_load"]["status"] == "missing", checks["bpf_load"]
    assert "setcap" in checks["capabilities"]["fix"], checks["capabilities"]
    assert "CAP_BPF" in checks["capabilities"]["detail"], checks["capabilities"]


@needs("bpf")
def test_doctor_where_all_is_well(ctx):
    done = ctx.run(ctx.whyidle, "doctor", "--json")
    assert done.status == 0, done
    report = json.loads(done.out)
    assert report["can_record"] is True
    for check in report["checks"]:
        assert check["status"] in ("ok", "degraded", "missing", "note"), check
        assert check["status"] in ("ok", "note") or check.get("fix"), f"no way out is named: {check}"
    assert "Recording is possible." in ctx.run(ctx.whyidle, "doctor").out


@needs("namespace", "bpf")
def test_no_btf(ctx):
    script = f"mount -t tmpfs tmpfs /sys/kernel/btf && exec {ctx.whyidle} record -o s.whyidle -- true"
    done = ctx.run("unshare", "-m", "sh", "-c", script)
    one_line_error(done, 1, "BTF")


# ---- CUPTI ----

@needs("bpf")
def test_missing_cupti(ctx):
    done = ctx.record(ctx.sim("healthy"), "--seconds", "1", options=QUIET, env={"WHYIDLE_CUPTI": "/nonexistent.so"})
    assert done.status == 0, done
    assert "steps" in done.out, "the command's output is gone"
    says(done, "no GPU timeline", "WHYIDLE_CUPTI")
    report = ctx.report()
    # What the probes on CUDA calls tell is no substitute that passes for one.
    assert report["source"]["gpu_timeline"] == "inferred", report["source"]
    assert any("no GPU timeline" in line for line in report["degraded"]), report["degraded"]
    assert any("inferred" in line for line in report["degraded"]), report["degraded"]


@needs("bpf")
def test_cupti_taken_by_the_program_itself(ctx):
    done = ctx.record(ctx.sim("cupti_user"), options=QUIET)
    assert done.status == 0, f"the program's own profile was disturbed: {done}"
    says(done, "no GPU timeline", "CUPTI")
    assert any("no GPU timeline" in line for line in ctx.report()["degraded"])


@needs("bpf")
def test_cupti_records_taken_over_without_subscribing(ctx):
    done = ctx.record(ctx.sim("cupti_user"), "takeover", options=QUIET)
    assert done.status == 0, f"the program's own profile was disturbed: {done}"
    says(done, "CUPTI delivered no GPU operation", "another profiler")
    assert any("another profiler" in line for line in ctx.report()["degraded"])


@needs("bpf")
def test_cupti_taken_falls_back_to_probes(ctx):
    done = ctx.record(ctx.sim("healthy"), "--seconds", "2", options=QUIET, env={"SIM_CUPTI_TAKEN": "1"})
    assert done.status == 0, done
    says(done, "no GPU timeline")
    says(done, "probes on the CUDA calls")
    dump = ctx.run(ctx.whyidle, "dump", ctx.path("session.whyidle"))
    assert dump.status == 0, dump
    calls = [line for line in dump.out.splitlines() if line.split()[0] == "call"]
    assert len(calls) > 100, f"{len(calls)} CUDA calls were seen"


@needs("bpf")
def test_injection_used_by_another_tool(ctx):
    done = ctx.record("sh", "-c", "echo $CUDA_INJECTION64_PATH", options=QUIET,
                      env={"CUDA_INJECTION64_PATH": "/opt/other/tool.so"})
    assert done.status == 0, done
    assert done.out == "/opt/other/tool.so\n", "the other tool's setting was changed"
    says(done, "no GPU timeline", "CUDA_INJECTION64_PATH", "/opt/other/tool.so")


# ---- the command ----

def test_command_not_found(ctx):
    one_line_error(ctx.record("no-such-command-anywhere"), 127, "command not found: no-such-command-anywhere")
    one_line_error(ctx.record("/no/such/path"), 127, "not found: /no/such/path")
    assert os.listdir(ctx.folder) == []


def test_command_not_executable(ctx):
    with open(ctx.path("plain.txt"), "w", encoding="utf-8") as file:
        file.write("text\n")
    one_line_error(ctx.record(ctx.path("plain.txt")), 126, "plain.txt")
    one_line_error(ctx.record("/"), 126, "cannot run /")


@needs("bpf")
def test_interpreter_not_found(ctx):
    with open(ctx.path("script"), "w", encoding="utf-8") as file:
        file.write("#!/no/such/interpreter\n")
    os.chmod(ctx.path("script"), 0o755)
    one_line_error(ctx.record(ctx.path("script")), 127, "script", "interpreter")
    assert sorted(os.listdir(ctx.folder)) == ["script"], "an empty session was left behind"


@needs("bpf")
def test_script_without_interpreter_line(ctx):
    with open(ctx.path("script"), "w", encoding="utf-8") as file:
        file.write("echo from $1\n")
    os.chmod(ctx.path("script"), 0o755)
    done = ctx.record(ctx.path("script"), "shell", options=QUIET)
    assert done.status == 0 and done.out == "from shell\n", done


@needs("bpf")
def test_command_killed_by_a_signal(ctx):
    for name, number in (("KILL", signal.SIGKILL), ("SEGV", signal.SIGSEGV)):
        done = ctx.record(ctx.sim("self_kill"), "--steps", "400", "--signal", name, options=QUIET)
        assert done.status == 128 + number, done
        says(done, "ended without a flush")
        report = ctx.report()
        assert report["source"]["incomplete"] is False
        assert report["gpus"] and kernel_time(report) > 0, "what was recorded before the signal is gone"


@needs("bpf")
def test_exit_status_and_streams_are_the_commands(ctx):
    done = ctx.run("sh", "-c", f"echo from stdin | {ctx.whyidle} record {' '.join(QUIET)} -o s.whyidle -- "
                   "sh -c 'cat; echo to stderr >&2; exit 41'")
    assert done.status == 41, done
    assert done.out == "from stdin\n", done
    assert "to stderr\n" in done.err, done


@alone
@needs("bpf")
def test_fork_and_exec(ctx):
    done = ctx.record(ctx.sim("fork_exec"), options=QUIET)
    assert done.status == 0, done
    report = ctx.report()
    gpu, = report["gpus"]
    assert gpu["op_count"] == 100, f"{gpu['op_count']} operations of the executed child, 50 steps of 2 kernels"
    assert report["degraded"] == [], report["degraded"]


@needs("bpf")
def test_command_without_cuda(ctx):
    done = ctx.record(ctx.sim("no_cuda"))
    assert done.status == 0, done
    assert "no process used CUDA" in done.err, done
    report = ctx.report()
    assert report["gpus"] == []
    assert "no process used CUDA" in report["degraded"]


@alone
@needs("namespace", "bpf")
def test_command_in_a_pid_namespace_of_its_own(ctx):
    done = ctx.record("unshare", "--pid", "--fork", ctx.sim("lock_wait"), "--seconds", "1", "--truth",
                      ctx.path("truth.json"), options=QUIET)
    assert done.status == 0, done
    with open(ctx.path("truth.json"), encoding="utf-8") as file:
        truth = json.load(file)
    gpu, = ctx.report()["gpus"]
    assert {t["pid"] for t in truth["threads"]} == {1}, "the workload was not in a namespace of its own"
    causes = {cause_key(c): c for c in gpu["causes"]}
    assert "wait.lock@launcher" in causes, f"thread ids were not translated: {list(causes)}"
    thread, = causes["wait.lock@launcher"]["threads"]
    assert thread["pid"] > 1 and thread["comm"] == "lock_wait", thread


# ---- the output file ----

@needs("bpf")
def test_unwritable_output(ctx):
    done = ctx.run(ctx.whyidle, "record", "-o", "/no/such/folder/s.whyidle", "--", "touch", ctx.path("started"))
    one_line_error(done, 1, "/no/such/folder/s.whyidle")
    done = ctx.run(ctx.whyidle, "record", "-o", ctx.path("."), "--", "touch", ctx.path("started"))
    one_line_error(done, 1, "irectory|not a regular file")
    assert not os.path.exists(ctx.path("started")), "the command ran although its recording had nowhere to go"


@alone
@limit(90)
@needs("namespace", "bpf")
def test_full_disk(ctx):
    # First what has room enough, then what has not: more than a megabyte a second, then the GPU again.
    healthy, flood = ctx.sim("healthy"), ctx.sim("many_events")
    script = f"""
        mount -t tmpfs -o size=600k tmpfs {ctx.folder} && cd {ctx.folder} || exit 99
        {ctx.whyidle} record -q --no-report -o s.whyidle -- sh -c \\
            "{healthy} --seconds 1; {flood} --rate 0 --seconds 1 > /dev/null; {healthy} --seconds 0.5 > /dev/null"
        echo "status $?"
        {ctx.whyidle} report --json s.whyidle
    """
    done = ctx.run("unshare", "-m", "sh", "-c", script)
    assert len([line for line in done.errors if "space" in line]) == 1, f"not one line about the disk: {done}"
    command, status, report = done.out.split("\n", 2)
    assert "steps" in command, "the command was disturbed"
    assert status == "status 1", "a recording that is not whole must not look like one that is"
    report = json.loads(report)
    check_report(report)
    assert report["gpus"] and kernel_time(report) > 0, "what was recorded before the disk was full is gone"


# ---- session files ----

def record_healthy(ctx):
    done = ctx.record(ctx.sim("healthy"), "--seconds", "2", options=QUIET)
    assert done.status == 0, done
    with open(ctx.path("session.whyidle"), "rb") as file:
        return bytearray(file.read())


def write(ctx, name, data):
    with open(ctx.path(name), "wb") as file:
        file.write(data)


@needs("bpf")
def test_truncated_session(ctx):
    data = record_healthy(ctx)
    whole = ctx.report()
    write(ctx, "cut.whyidle", data[:len(data) * 3 // 4])
    cut = ctx.report("cut.whyidle")
    assert whole["source"]["incomplete"] is False and cut["source"]["incomplete"] is True
    assert 0 < kernel_time(cut) < kernel_time(whole)
    text = ctx.run(ctx.whyidle, "report", ctx.path("cut.whyidle"))
    assert "incomplete" in text.out or "cut" in text.out, text
    write(ctx, "header.whyidle", data[:40])
    one_line_error(ctx.run(ctx.whyidle, "report", ctx.path("header.whyidle")), 1, "header.whyidle")


@needs("bpf")
def test_damaged_session(ctx):
    data = record_healthy(ctx)
    middle = len(data) // 2
    data[middle:middle + 64] = bytes(64)
    write(ctx, "damaged.whyidle", data)
    report = ctx.report("damaged.whyidle")
    assert report["losses"]["file"] > 0 or report["source"]["incomplete"], "the damage is not told"


def test_foreign_files(ctx):
    write(ctx, "empty", b"")
    write(ctx, "text", b"this is no session\n" * 100)
    write(ctx, "zeros", bytes(100000))
    for name, reason in (("empty", "empty"), ("text", "not a"), ("zeros", "not a")):
        one_line_error(ctx.run(ctx.whyidle, "report", ctx.path(name)), 1, name, reason)
    one_line_error(ctx.run(ctx.whyidle, "report", ctx.path("missing")), 1, "missing", "No such file")
    one_line_error(ctx.run(ctx.whyidle, "report", ctx.path(".")), 1, "irectory|not a")


@needs("bpf")
def test_newer_session(ctx):
    data = record_healthy(ctx)
    struct.pack_into("<I", data, 8, 99)
    struct.pack_into("<I", data, 28, zlib.crc32(bytes(data[:28])))
    write(ctx, "newer.whyidle", data)
    one_line_error(ctx.run(ctx.whyidle, "report", ctx.path("newer.whyidle")), 1, "newer", "99")


# ---- signals ----

@needs("bpf")
def test_ctrl_c(ctx):
    terminal = Terminal(ctx.whyidle, "record", "-o", "session.whyidle", "--", ctx.sim("healthy"), "--seconds", "60",
                        cwd=ctx.folder)
    seen = terminal.read(b"events/s")
    seen += terminal.read(b"2 s, ")
    terminal.press(b"\x03")
    seen += terminal.read(b"session kept in")
    assert terminal.wait() == 128 + signal.SIGINT
    assert b"busy" in seen, f"no report: {seen!r}"
    report = ctx.report()
    assert report["source"]["incomplete"] is False
    assert kernel_time(report) > 0


@needs("bpf")
def test_second_ctrl_c_stops_waiting(ctx):
    script = ("import signal, sys, time\n"
              "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
              "print('deaf', flush=True)\n"
              "time.sleep(30)\n")
    terminal = Terminal(ctx.whyidle, "record", "--no-report", "-o", "session.whyidle", "--", sys.executable, "-c", script,
                        cwd=ctx.folder)
    terminal.read(b"deaf")
    terminal.press(b"\x03")
    time.sleep(0.5)  # two keys, not one: what is tested is that the first one alone does not end it
    assert terminal.runs(), "ended before its command"
    terminal.press(b"\x03")
    terminal.read(b"session kept in")
    assert terminal.wait() == 128 + signal.SIGINT
    report = ctx.report()
    assert report["source"]["incomplete"] is False
    assert any("stopped by a signal" in line for line in report["degraded"]), report["degraded"]


@needs("bpf")
def test_interrupt_that_the_command_survives(ctx):
    script = ("import signal, time\n"
              "def stop(*_): print('saved', flush=True); raise SystemExit(5)\n"
              "signal.signal(signal.SIGINT, stop)\n"
              "print('ready', flush=True)\n"
              "time.sleep(30)\n")
    terminal = Terminal(ctx.whyidle, "record", *QUIET, "-o", "session.whyidle", "--", sys.executable, "-c", script,
                        cwd=ctx.folder)
    terminal.read(b"ready")
    terminal.press(b"\x03")
    terminal.read(b"saved")
    assert terminal.wait() == 5


@needs("bpf")
def test_terminate_is_passed_on(ctx):
    process = ctx.start(ctx.whyidle, "record", *QUIET, "-o", "session.whyidle", "--", ctx.sim("healthy"), "--seconds", "60")
    try:
        wait_until(lambda: os.path.exists(ctx.path("session.whyidle")) and
                   os.path.getsize(ctx.path("session.whyidle")) > 20000, "a session that grows")
        process.terminate()
        process.communicate(timeout=20)
        assert process.returncode == 128 + signal.SIGTERM
    finally:
        end_process(process)
    report = ctx.report()
    assert report["source"]["incomplete"] is False and kernel_time(report) > 0


@needs("bpf")
def test_recorder_killed(ctx):
    """Nothing that was flushed is lost, and the command does not notice."""
    process = ctx.start(ctx.whyidle, "record", *QUIET, "-o", "session.whyidle", "--", ctx.sim("healthy"), "--seconds", "4")
    wait_until(lambda: os.path.exists(ctx.path("session.whyidle")) and
               os.path.getsize(ctx.path("session.whyidle")) > 30000, "a session that grows")
    process.kill()
    out, _ = process.communicate(timeout=30)  # ends when the command has closed its output
    assert b"steps" in out, "the command died with its recorder"
    report = ctx.report()
    assert report["source"]["incomplete"] is True and kernel_time(report) > 0


# ---- sudo ----

@needs("root", "bpf")
def test_under_sudo_the_command_is_the_users(ctx):
    """sudo itself is not needed: its variables, and an ancestor of that name with the user's own environment, are."""
    os.chmod(ctx.folder, 0o777)
    sudo = shutil.copy("/bin/sh", ctx.path("sudo"))
    show = "id -u; id -g; echo $HOME; echo $USER; echo $OF_THE_USER; echo ${SUDO_UID-none}; umask"
    script = (f"SUDO_UID={NOBODY} SUDO_GID={NOBODY} SUDO_USER=nobody HOME=/root USER=root OF_THE_USER= ; "
              "export SUDO_UID SUDO_GID SUDO_USER HOME USER; unset OF_THE_USER; "
              f"{ctx.whyidle} record {' '.join(QUIET)} -o s.whyidle --html s.html $OPTIONS -- sh -c '{show}'; exit $?")
    env = {"OF_THE_USER": "mine", "HOME": "/home/of/nobody", "USER": "nobody", "OPTIONS": ""}
    done = ctx.run(sudo, "-c", script, env=env)
    assert done.status == 0, done
    uid, gid, _, user, own, sudo_uid, _ = done.out.splitlines()
    assert (int(uid), int(gid)) == (NOBODY, NOBODY), done
    assert (user, own, sudo_uid) == ("nobody", "mine", "none"), done
    for name in ("s.whyidle", "s.html"):
        assert os.stat(ctx.path(name)).st_uid == NOBODY, f"{name} belongs to root"
    done = ctx.run(sudo, "-c", script.replace("$OPTIONS", "--as-root"), env=env)
    assert done.status == 0 and done.out.splitlines()[0] == "0", done


@alone
@needs("root", "bpf")
def test_under_sudo_the_bridge_is_accepted(ctx):
    done = ctx.record(public_sim(ctx, "healthy"), "--seconds", "1", options=QUIET,
                      env={"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY), "SUDO_USER": "nobody"})
    assert done.status == 0, done
    assert kernel_time(ctx.report()) > 500e6


# ---- usage ----

def test_usage_errors(ctx):
    for argv in (["record"], ["record", "--nonsense", "--", "true"], ["report"], ["nonsense"],
                 ["--nonsense"], ["doctor", "extra"], ["report", "a", "--window", "x"]):
        one_line_error(ctx.run(ctx.whyidle, *argv), 2, "--help|A\\.\\.B")
    one_line_error(ctx.run(ctx.whyidle, "report", "/nonexistent/a", "/nonexistent/b"), 1, "/nonexistent/a")
    # As root it looks at all that uses a GPU: test_running.py.
    if os.geteuid() == 0:
        done = ctx.run(*AS_NOBODY, public_copy(ctx))
    else:
        done = ctx.run(ctx.whyidle)
    assert done.status == 2 and "usage" in done.err and not done.out, done
    for argv in (["--help"], ["help"], ["record", "--help"], ["help", "report"], ["doctor", "-h"]):
        done = ctx.run(ctx.whyidle, *argv)
        assert done.status == 0 and done.out.startswith("usage: whyidle") and not done.err, done
    assert ctx.run(ctx.whyidle, "--version").out.startswith("whyidle ")


def test_output_that_cannot_be_written(ctx):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([ctx.whyidle, "doctor"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1, done
