# SPDX-License-Identifier: GPL-2.0-only
"""When the recording of a command begins and ends, as nsys' users know it: --delay, --duration, --kill, --capture-range."""
import json
import os
import re
import signal
import subprocess
import threading

from harness import check_report, end_process, limit, needs, one_line_error, wait_until

QUIET = ("-q", "--no-report")


def session_seconds(report):
    return (report["session"]["end_ns"] - report["session"]["start_ns"]) / 1e9


def start(ctx, options, *command):
    return ctx.start(ctx.whyidle, "record", "-o", ctx.path("session.whyidle"), *options, "--", *command,
                     stdin=subprocess.PIPE, text=True)


@limit(60)
@needs("bpf")
def test_part_of_a_command_then_its_end(ctx):
    """A shell's child that runs before the recording begins is recorded, and ended with the shell."""
    script = f"{ctx.sim('sync_serial')} --seconds 40 & echo child $!; wait; echo went on"
    done = ctx.record("sh", "-c", script, options=(*QUIET, "--delay", "700ms", "--duration", "1", "--kill", "sigterm"))
    assert done.status == 0 and "went on" not in done.out, done
    child = int(re.match(r"child (\d+)\n", done.out)[1])
    wait_until(lambda: not os.path.exists(f"/proc/{child}"), "the child has been ended as well")
    report = ctx.report()
    assert 1.0 <= session_seconds(report) < 20, report["session"]
    gpu, = report["gpus"]
    assert gpu["op_count"] > 0 and gpu["window"]["start_ns"] >= report["session"]["start_ns"] - 10_000_000
    # Had BPF not found the child, no cause would be known.
    known = {(cause["code"], cause["role"]) for cause in gpu["causes"]}
    assert ("host.sync_then_serial", "launcher") in known, known
    unknown = sum(c["ns"] for c in gpu["causes"] if c["code"] in ("unknown.no_sched", "unknown.untraced"))
    assert unknown <= gpu["idle_ns"] / 10, gpu["causes"]  # at the edge: a call that was open when CUPTI began
    assert not any("delivered no GPU operation" in line for line in report["degraded"]), report["degraded"]
    return f"{session_seconds(report):.2f} s, {gpu['op_count']} operations"


@limit(60)
@needs("bpf")
def test_command_that_goes_on_is_left_alone(ctx):
    """The report comes when the recording ends, the exit status when the command does."""
    process = start(ctx, ("--duration", "500ms", "--json"), "sh", "-c",
                    f"{ctx.sim('sync_serial')} --seconds 1 >/dev/null; read word; exit 7")
    out = []
    reader = threading.Thread(target=lambda: out.append(process.stdout.read()))
    reader.start()  # the report may be longer than a pipe holds, and comes before the line that is waited for
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "session kept in" in line:
                break
        assert process.poll() is None, "whyidle has ended before its command"
        process.stdin.write("go\n")
        process.stdin.close()
        process.wait(timeout=30)
        assert process.returncode == 7, (process.returncode, lines, process.stderr.read())
    finally:
        end_process(process)
        reader.join()
    report = json.loads(out[0])
    check_report(report)
    assert not report["source"]["incomplete"] and report["gpus"][0]["op_count"] > 0, report["source"]
    assert not any("stopped" in line for line in report["degraded"]), report["degraded"]


@limit(60)
@needs("bpf")
def test_signals_still_reach_a_command_that_goes_on(ctx):
    process = start(ctx, ("--duration", "300ms", "--no-report"), "sh", "-c", "read word")
    try:
        for line in process.stderr:
            if "session kept in" in line:
                break
        process.terminate()
        process.wait(timeout=20)  # its input is still open: sh can only have been ended
        assert process.returncode == 128 + signal.SIGTERM, process.returncode
    finally:
        end_process(process)


@limit(60)
@needs("bpf")
def test_command_ends_before_the_recording_begins(ctx):
    done = ctx.record(ctx.sim("exit_status"), "3", options=(*QUIET, "--delay", "50"))
    assert done.status == 3, done
    report = ctx.report()
    assert not report["gpus"] or not report["gpus"][0]["op_count"], report["gpus"]
    assert any("ended before the recording began" in line for line in report["degraded"]), report["degraded"]


@limit(60)
@needs("bpf")
def test_report_of_what_the_program_marks(ctx):
    options = ("-q", "--json", "--html", ctx.path("report.html"), "--capture-range", "cudaProfilerApi")
    done = ctx.record(ctx.sim("nvtx_ranges"), "profiled", options=options)
    assert done.status == 0, done
    part = json.loads(done.out[done.out.index("\n{") + 1:])
    check_report(part)
    later = ctx.report("session.whyidle", "--capture-range", "cudaProfilerApi")
    assert part["gpus"][0]["window"] == later["gpus"][0]["window"] != ctx.report()["gpus"][0]["window"]
    assert part["gpus"][0]["idle_ns"] == later["gpus"][0]["idle_ns"]
    with open(ctx.path("report.html"), encoding="utf-8") as file:
        page = json.loads(re.search(r'id="report">(.*?)</script>', file.read(), re.S)[1])
    assert page["gpus"][0]["window"] == part["gpus"][0]["window"]
    one_line_error(ctx.record(ctx.sim("nvtx_ranges"), "1", options=("-q", "--capture-range", "nvtx:nothing")), 1,
                   "no range of that name")
