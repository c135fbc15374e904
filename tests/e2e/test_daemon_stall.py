# SPDX-License-Identifier: GPL-2.0-only
"""A stall that begins and ends while the daemon watches: metrics, and the recording that it keeps by itself."""
import json
import pathlib
import signal
import time

from harness import check_report, end_process, limit, needs, wait_until
from test_daemon import Daemon

SOON = 15  # s: from the begin or the end of a stall to the metric


def share(daemon, cause):
    """Of the last window in which the GPU was idle for it, by the launcher."""
    return daemon.value(f'whyidle_gpu_idle_cause_ratio{{gpu="0",cause="{cause}",role="launcher"')


def seconds_until(condition, what):
    """Asks now and then: answers cost the daemon CPU time, which counts against its budget."""
    begin = time.monotonic()
    wait_until(lambda: time.sleep(0.3) or condition(), what, 30)
    return time.monotonic() - begin


@limit(100)
@needs("root", "bpf")
def test_stall_comes_and_goes(ctx):
    """At the default budget and interval, which would not have a window for the change within SOON by schedule."""
    workload = ctx.start(ctx.sim("planted"), "--plant", "lock@launcher:30", "--gpu-us", "5000", "--seconds", "90",
                         "--when", "signal")
    # Left from the triggers: a GPU that is idle, at once. A healthy loop fires none.
    daemon = Daemon(ctx, "--trigger-idle-time", "1ms", "--trigger-pause", "1ms", "--trigger-step", "0")
    kept = pathlib.Path(ctx.path("history/kept"))
    try:
        seconds_until(lambda: daemon.value("whyidle_gpu_observed_seconds_total") > 0, "a window with the GPU")
        assert share(daemon, "wait.lock") == 0 and not list(kept.iterdir()), daemon.get()
        workload.send_signal(signal.SIGUSR1)
        began = seconds_until(lambda: share(daemon, "wait.lock") > 0.4, "the stall in the metrics")
        assert daemon.value('whyidle_triggers_total{trigger="idle",kept="yes"') == 1, daemon.get()
        workload.send_signal(signal.SIGUSR2)
        ended = seconds_until(lambda: share(daemon, "wait.lock") < 0.05, "its end in the metrics")
        assert daemon.value("whyidle_gpu_idle_ratio") < 0.4, daemon.get()
        report = json.loads(ctx.run(ctx.whyidle, "report", "--json", str(next(kept.glob("*-idle.whyidle")))).out)
        check_report(report)
        top = report["gpus"][0]["causes"][0]
        assert (top["code"], top["role"]) == ("wait.lock", "launcher"), top
        assert began <= SOON and ended <= SOON, f"{began:.1f} s to see its begin, {ended:.1f} s to see its end"
        return f"{began:.1f} s to see its begin, {ended:.1f} s to see its end"
    finally:
        end_process(daemon.process)
        end_process(workload)
