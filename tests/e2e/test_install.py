# SPDX-License-Identifier: GPL-2.0-only
"""make install and uninstall into a folder, and the examples for systemd, containers and Kubernetes."""
import json
import os
import pathlib
import re
import shutil
import subprocess

from harness import Skip, needs

BESIDE_OTHERS = True

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs/production"
MOST_EXPOSED = 50  # tenths, of 100 by systemd-analyze; a service that nothing is said of has 96


def make(ctx, target):
    """Into the folder "root", as a package for /usr would."""
    return ctx.run("make", "-C", ROOT, "--no-print-directory", target, f"BUILD={os.path.relpath(ctx.build, ROOT)}",
                   "PREFIX=/usr", f"DESTDIR={ctx.path('root')}", env={"MAKEFLAGS": None, "MAKELEVEL": None})


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def installed(ctx):
    done = make(ctx, "install")
    assert done.status == 0, done
    return pathlib.Path(ctx.path("root"))


@needs()
def test_install_and_uninstall(ctx):
    root = installed(ctx)
    there = files(root)
    for name in ("usr/bin/whyidle", "usr/share/man/man1/whyidle.1", "usr/lib/systemd/system/whyidle.service",
                 "usr/share/doc/whyidle/docs/production/dashboard.json"):
        assert name in there, there
    assert all(name.startswith("usr/") for name in there), there
    done = ctx.run(root / "usr/bin/whyidle", "version")
    assert done.status == 0 and done.out, done
    # It is at home in the folder that it was put into, and only there.
    unit = (root / "usr/lib/systemd/system/whyidle.service").read_text()
    assert re.findall(r"^ExecStart=(\S+)", unit, re.MULTILINE) == ["/usr/bin/whyidle"] and "/usr/local" not in unit, unit
    (root / "usr/bin/other").touch()
    done = make(ctx, "uninstall")
    assert done.status == 0 and files(root) == ["usr/bin/other"], (done, files(root))
    done = make(ctx, "uninstall")
    assert done.status == 0, done


@needs()
def test_systemd_takes_the_unit(ctx):
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is not installed")
    root = installed(ctx)
    unit = root / "usr/lib/systemd/system/whyidle.service"
    # What it needs besides is the target of all services.
    for name in "sysinit.target", "multi-user.target", "network.target", "basic.target", "shutdown.target":
        (unit.parent / name).write_text("[Unit]\nDescription=stands for the real one\n")
    (root / "bin").mkdir()
    (root / "bin/kill").touch(mode=0o755)
    done = ctx.run("systemd-analyze", f"--root={root}", "--man=no", "verify", unit)
    assert done.status == 0 and not done.err, done
    unit.write_text(unit.read_text().replace("MemoryHigh=", "MemoryHeigh="))
    done = ctx.run("systemd-analyze", f"--root={root}", "--man=no", "verify", unit)
    assert "MemoryHeigh" in done.err, f"a mistake is not found: {done}"
    done = ctx.run("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", "--no-pager",
                   EXAMPLES / "whyidle.service")
    assert done.status == 0, done
    return "exposure " + re.search(r"whyidle.service: ([\d.]+)", done.out)[1]


def unit_capabilities():
    text = (EXAMPLES / "whyidle.service").read_text()
    return sorted(re.findall(r"\bCAP_(\w+)", re.search(r"^CapabilityBoundingSet=(.*)", text, re.MULTILINE)[1]))


def takes(ctx, arguments):
    """The program knows these options."""
    done = ctx.run(ctx.whyidle, *arguments, "--help")
    assert done.status == 0 and "usage: whyidle daemon" in done.out, done
    done = ctx.run(ctx.whyidle, *arguments, "--no-such-option", "--help")
    assert done.status != 0, "--help hides a mistake"


@needs()
def test_kubernetes(ctx):
    # Debian's interpreter has the package, another that is found first may not.
    read = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"
    done = next((done for done in (subprocess.run([python, "-c", read, EXAMPLES / "daemonset.yaml"], capture_output=True,
                                                  text=True, check=False) for python in ("/usr/bin/python3", "python3"))
                 if "No module named" not in done.stderr), None)
    if not done:
        raise Skip("python3-yaml is not installed")
    assert done.returncode == 0, done.stderr
    [document] = json.loads(done.stdout)
    assert (document["apiVersion"], document["kind"]) == ("apps/v1", "DaemonSet")
    pod = document["spec"]["template"]
    assert document["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    [container] = pod["spec"]["containers"]
    rights = container["securityContext"]
    assert pod["spec"]["hostPID"] and not rights.get("privileged") and rights["capabilities"]["drop"] == ["ALL"]
    assert sorted(rights["capabilities"]["add"]) == unit_capabilities()
    takes(ctx, container["args"])
    [port] = [port["containerPort"] for port in container["ports"]]
    assert f":{port}" in container["args"][container["args"].index("--listen") + 1]
    assert {mount["name"] for mount in container["volumeMounts"]} == {v["name"] for v in pod["spec"]["volumes"]}


@needs()
def test_container(ctx):
    lines = [line for line in (EXAMPLES / "Containerfile").read_text().splitlines() if not line.startswith("#")]
    words = [line.split(" ", 1) for line in lines]
    assert [word for word, _ in words] == ["FROM", "RUN", "COPY", "ENTRYPOINT", "CMD"], lines
    instructions = dict(words)
    source, target = instructions["COPY"].split()
    assert source == "build/whyidle" and json.loads(instructions["ENTRYPOINT"]) == [target]
    takes(ctx, json.loads(instructions["CMD"]))
    # What the program loads when it is wanted is there.
    loaded = set()
    for path in (ROOT / "userspace").rglob("*.c"):
        loaded |= set(re.findall(r'#define \w+_LIBRARY\s+"(lib\w+)\.so\.(\d+)"', path.read_text()))
    packages = re.search(r"install -y --no-install-recommends (.*?) &&", instructions["RUN"])[1].split()
    assert loaded and sorted(packages) == sorted("".join(pair) for pair in loaded), (loaded, packages)
