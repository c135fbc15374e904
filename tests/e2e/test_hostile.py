# SPDX-License-Identifier: GPL-2.0-only
"""The recorder runs as root and reads what the target can write: nothing that the target does may harm it."""
import os
import pathlib
import resource
import subprocess
import sys

from harness import NOBODY, Skip, limit, needs, says

BESIDE_OTHERS = True

HOSTILE = str(pathlib.Path(__file__).with_name("hostile_bridge.py"))
OPTIONS = ("-q", "--no-report", "--no-bpf")


def record(ctx, case, *arguments, options=OPTIONS):
    done = ctx.record(sys.executable, HOSTILE, case, *arguments, options=options)
    assert done.status == 0 and done.out.endswith("hostile: done\n"), done
    return done, ctx.report()


def test_broken_rings_are_given_up(ctx):
    for case in ("bad_head", "bad_size", "garbage"):
        done, report = record(ctx, case)
        says(done, "process [0-9]+", "could not be read")
        assert report["losses"]["bridge_ring"] > 0, f"{case}: {report['losses']}"


def test_absurd_records_are_left_out(ctx):
    done, report = record(ctx, "absurd_records")
    says(done, "make no sense")
    assert report["gpus"] == [], report["gpus"]
    assert 0 < report["losses"]["bridge_ring"] < 1 << 50, report["losses"]


@limit(60)
def test_writer_that_never_ends(ctx):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    record(ctx, "endless", "2", options=(*OPTIONS, "--bridge-ring-size", "1M"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_maxrss < 500_000, f"{after.ru_maxrss} KiB of memory"
    assert after.ru_utime - before.ru_utime < 20


def test_messages_that_nobody_asked_for(ctx):
    record(ctx, "talk", "1")


@limit(60)
def test_bridges_that_come_and_go(ctx):
    done, _ = record(ctx, "come_and_go", options=(*OPTIONS, "--bridge-ring-size", "64K"))
    assert len(done.errors) < 20, f"{len(done.errors)} lines"


@needs("root")
def test_other_users_are_not_let_in(ctx):
    script = f"""
import os, subprocess, sys
done = subprocess.run(["setpriv", "--reuid={NOBODY}", "--regid={NOBODY}", "--clear-groups", sys.executable, "-c",
    "import os, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); "
    "s.connect(b'\\\\0' + os.environb[b'WHYIDLE_SOCKET']); print('got', len(s.recv(64)))"],
    capture_output=True, text=True, check=False)
print(done.stdout, done.stderr)
"""
    if subprocess.run(["setpriv", f"--reuid={NOBODY}", "--clear-groups", sys.executable, "-c", ""], check=False,
                      capture_output=True).returncode:
        script = script.replace("sys.executable", "'/usr/bin/python3'")
        if not os.path.exists("/usr/bin/python3"):
            raise Skip("no Python that another user can run")
    done = ctx.record(sys.executable, "-c", script, options=OPTIONS)
    assert "got 0" in done.out or "Connection reset" in done.out, f"the other user got something else: {done}"
