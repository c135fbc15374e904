# SPDX-License-Identifier: GPL-2.0-only
"""The daemon on the simulated GPU: metrics, control socket, history across a kill."""
import json
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request

from harness import Skip, end_process, limit, needs, wait_until


class Daemon:
    def __init__(self, ctx, *options):
        self.ctx, self.log = ctx, ctx.path("daemon.log")
        self.control = ctx.path("control")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [ctx.whyidle, "daemon", "--listen", "127.0.0.1:0", "--control", self.control, "--history",
                 ctx.path("history"), "--log", "json", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        count = len(self.events("started"))
        wait_until(lambda: len(self.events("started")) > count or self.process.poll() is not None, "the start", 40)
        assert self.process.poll() is None, open(self.log, encoding="utf-8").read()
        self.port = self.events("listening")[-1]["port"]

    def events(self, name):
        with open(self.log, encoding="utf-8") as log:
            lines = [json.loads(line) for line in log if line.startswith("{") and line.endswith("\n")]
        return [line for line in lines if line["event"] == name]

    def get(self, path="/metrics", accept="text/plain"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def value(self, name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.get().splitlines() if line.startswith(name))

    def ask(self, request):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(20)
            client.connect(self.control)
            client.sendall(request.encode() + b"\n")
            text = b""
            while part := client.recv(65536):
                text += part
        return json.loads(text)


@limit(120)
@needs("root", "bpf")
def test_windows_metrics_and_a_kill(ctx):
    workload = ctx.start(ctx.sim("lock_wait"), "--seconds", "100")
    daemon = Daemon(ctx, "--budget", "50%", "--interval", "1s", "--window", "300ms")
    try:
        wait_until(lambda: daemon.value('whyidle_launches_total{process="lock_wait"') > 0, "a window with launches", 50)
        wait_until(lambda: daemon.value('whyidle_process_cpu_seconds_total{process="lock_wait"') > 0, "CPU time")
        # Without CUPTI in the target the GPU's timeline comes from its calls; and the probes on them are felt.
        wait_until(lambda: daemon.value("whyidle_gpu_observed_seconds_total") > 0, "a GPU timeline", 30)
        text = daemon.get(accept="application/openmetrics-text")
        assert 'timeline="inferred"' in text, text
        assert daemon.value("whyidle_gpu_idle_seconds_total") > 0, text
        assert 0 < daemon.value("whyidle_launch_slowdown_ratio") < 0.5, text
        assert daemon.value('whyidle_overhead_cpu_seconds_total{part="probes"') > 0, text
        assert text.endswith("# EOF\n")
        try:
            daemon.get("/etc/passwd")
            raise AssertionError("a path that is not there was answered")
        except urllib.error.HTTPError as error:
            assert error.code == 404
        pids = [process["pid"] for process in daemon.ask("status")["processes"]]
        assert workload.pid in pids, pids
        assert "error" in daemon.ask("nonsense")
        dumped = ctx.run(ctx.whyidle, "dump", "-d", "100", "-o", str(ctx.folder), "--control", daemon.control).out.split()
        assert dumped and "lock_wait" in ctx.run(ctx.whyidle, "dump", dumped[0]).out, dumped
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        daemon = Daemon(ctx, "--budget", "50%", "--interval", "1s", "--window", "300ms")
        assert daemon.value('whyidle_history_sessions{kind="windows"}') > 0, "history is gone"
        plain = daemon.get()
        assert daemon.ask("stop") == {"done": True}
        assert daemon.process.wait(timeout=30) == 0
        if not shutil.which("promtool"):
            raise Skip("promtool is not installed: the text was not checked with it")
        done = subprocess.run(["promtool", "check", "metrics"], input=plain, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr + plain
    finally:
        end_process(daemon.process)
        end_process(workload)


@limit(60)
@needs("root", "bpf")
def test_impossible_budget_is_said(ctx):
    workload = ctx.start(ctx.sim("lock_wait"), "--seconds", "50")
    daemon = Daemon(ctx, "--budget", "0.001%")
    try:
        wait_until(lambda: daemon.events("budget_step"), "a step of the budget", 40)
        assert daemon.events("budget_step")[0]["to"] == "t0"
        assert daemon.value("whyidle_windows_total") == 0
    finally:
        end_process(daemon.process)
        end_process(workload)
