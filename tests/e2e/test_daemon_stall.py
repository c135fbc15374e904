# SPDX-License-Identifier: GPL-2.0-only
"""A stall that begins and ends while the daemon watches: metrics, and the recording that it keeps by itself."""
import json
import os
import pathlib
import signal
import sys
import time

from harness import check_report, end_process, limit, needs, wait_until
from test_daemon import Daemon

SWITCHES = 'whyidle_process_switches_total{process="python3"'
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


STORM = """
import ctypes, subprocess, sys
ctypes.CDLL(sys.argv[1] + "/libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
assert ctypes.CDLL(sys.argv[1] + "/libcudart.so.13").cudaDeviceSynchronize() == 0
sys.exit(subprocess.run(sys.argv[2:], check=False).returncode)
"""


def own_cpu_ns(daemon):
    return int(pathlib.Path(f"/proc/{daemon.process.pid}/schedstat").read_text().split()[0])


def reload_with(daemon, path, text):
    """The new configuration is in force afterwards."""
    path.write_text(text)
    count = len(daemon.events("reloaded"))
    assert daemon.ask("reload") == {"done": True}
    wait_until(lambda: len(daemon.events("reloaded")) > count, "a reload")


@limit(100)
@needs("root", "bpf")
def test_storm_of_switches(ctx):
    """Threads of a GPU process change places as fast as they can on all CPUs but one (or on the only one)."""
    pairs = max(1, len(os.sched_getaffinity(0)) - 1)
    config = pathlib.Path(ctx.path("whyidle.conf"))
    config.write_text("budget = 100%\ninterval = 60s\nwindow = 2s\n")
    daemon = Daemon(ctx, "--config", config)
    storm = ctx.start(sys.executable, "-c", STORM, ctx.sim("lib"), ctx.sim("many_events"), "--pairs", pairs, "--seconds", "90")
    try:
        # A window ends early where there is too much, and what did not fit into the ring is counted.
        seconds_until(lambda: daemon.value("whyidle_windows_total") > 0, "a window")
        assert daemon.value("whyidle_window_seconds_total") < 2 or \
            daemon.value('whyidle_lost_records_total{place="bpf_ring"') > 0, daemon.get()
        reload_with(daemon, config, "budget = 0.5%\ninterval = 60s\n")
        seconds_until(lambda: daemon.value('whyidle_budget_state{state="t0_') == 1, "a state without the program")
        assert "the budget is 0.5 %" in daemon.events("budget_step")[-1]["text"]
        before = daemon.value('whyidle_overhead_cpu_seconds_total{part="switch"')
        assert before > 0, daemon.get()
        # From now on the storm costs the budget nothing, and the daemon goes on counting.
        begin, own, switches = time.monotonic(), own_cpu_ns(daemon), daemon.value(SWITCHES)
        time.sleep(4)  # a share needs a time that it is of
        used = (own_cpu_ns(daemon) - own) / (time.monotonic() - begin) / 1e9
        seconds_until(lambda: daemon.value(SWITCHES) > switches, "another reading")
        assert daemon.value('whyidle_overhead_cpu_seconds_total{part="switch"') - before < 0.001, (before, daemon.get())
        assert used <= 0.005, f"the daemon itself used {used * 100:.2f} % of a CPU"
        return f"own CPU {used * 100:.2f} %"
    finally:
        end_process(daemon.process)
        end_process(storm)
