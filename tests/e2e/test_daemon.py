# SPDX-License-Identifier: GPL-2.0-only
"""The daemon on the simulated GPU: metrics, control socket, history across a kill."""
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import Skip, end_process, limit, needs, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs/production"


class Daemon:
    def __init__(self, ctx, *options, prefix=()):
        self.ctx, self.log = ctx, ctx.path("daemon.log")
        self.control = ctx.path("control")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*prefix, ctx.whyidle, "daemon", "--listen", "127.0.0.1:0", "--control", self.control, "--history",
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
            client.connect(self.control)  # without a time-out it waits for room in the queue
            client.settimeout(20)
            client.sendall(request.encode() + b"\n")
            text = b""
            while part := client.recv(65536):
                text += part
        return json.loads(text)


def own_cpu_ns(daemon):
    """CPU time of its main thread, which is all that it has."""
    return int(pathlib.Path(f"/proc/{daemon.process.pid}/schedstat").read_text().split()[0])


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
        assert "whyidle_windows_total" in daemon.ask("metrics")["metrics"]
        top = ctx.run(ctx.whyidle, "top", "--once", "--control", daemon.control)
        assert top.status == 0 and f"{workload.pid} lock_wait" in top.out and " idle " in top.out, top
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
    daemon = Daemon(ctx, "--budget", "0.01%")
    try:
        wait_until(lambda: daemon.events("budget_step"), "a step of the budget", 40)
        step = daemon.events("budget_step")[0]
        assert step["to"] == "t0" and step["level"] == "warning" and "the budget is 0.01 %" in step["text"], step
        assert daemon.value('whyidle_budget_state{state="t0') == 1, daemon.get()  # or one of those that begin so
        assert daemon.value("whyidle_budget_steps_total") > 0 and daemon.value("whyidle_windows_total") == 0
        assert workload.pid in [process["pid"] for process in daemon.ask("status")["processes"]], "it goes on counting"
    finally:
        end_process(daemon.process)
        end_process(workload)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """The real one, with the configuration and the rules of docs/production."""

    def __init__(self, ctx, target):
        for program in "prometheus", "promtool":
            if not shutil.which(program):
                raise Skip(f"{program} is not installed")
        config = (EXAMPLES / "prometheus.yml").read_text()
        assert "127.0.0.1:9837" in config
        # As in the documentation but for the address, and faster.
        config = config.replace("127.0.0.1:9837", f"127.0.0.1:{target}").replace("15s", "1s")
        pathlib.Path(ctx.path("prometheus.yml")).write_text(config)
        shutil.copy(EXAMPLES / "alerts.yml", ctx.path("alerts.yml"))
        done = ctx.run("promtool", "check", "config", ctx.path("prometheus.yml"))
        assert done.status == 0, done.err + done.out
        self.port = free_port()
        self.log = ctx.path("prometheus.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file", ctx.path("prometheus.yml"), "--storage.tsdb.path", ctx.path("tsdb"),
                 "--web.listen-address", f"127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def get(self, what):
        """The answer of its API, None while it does not listen; an error of the request is raised."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{what}", timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it starts
                return None
            raise AssertionError(error.read().decode()) from error
        except OSError:
            assert self.process.poll() is None, open(self.log, encoding="utf-8").read()
            return None

    def query(self, expression):
        data = self.get("query?" + urllib.parse.urlencode({"query": expression}))
        return data and data["result"]


@limit(90)
@needs("root", "bpf")
def test_prometheus_scrapes_and_knows_the_examples(ctx):
    daemon = Daemon(ctx)
    prometheus = None
    try:
        prometheus = Prometheus(ctx, daemon.port)
        wait_until(lambda: prometheus.query('up{job="whyidle"} == 1'), "a scrape", 60)
        ratio = prometheus.query("whyidle_budget_ratio")
        assert ratio[0]["value"][1] == "0.005", ratio
        rules = [rule["name"] for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
        assert "GpuIdle" in rules, rules
        # What the dashboard asks for can be asked, and rules and dashboard ask for what there is.
        panels = json.loads((EXAMPLES / "dashboard.json").read_text())["panels"]
        asked = [target["expr"] for panel in panels for target in panel["targets"]]
        for expression in asked:
            expression = expression.replace("$instance", ".*")
            prometheus.query(re.sub(r"\$__(rate_interval|range)", "5m", expression))
        families = set(re.findall(r'"(whyidle_[a-z_]+)"', (ROOT / "userspace/daemon/families.c").read_text()))
        used = re.findall(r"\bwhyidle_[a-z_]+", " ".join(asked) + (EXAMPLES / "alerts.yml").read_text())
        unknown = {name for name in used if name.removesuffix("_total") not in families} - {"whyidle_idle"}
        assert used and not unknown, unknown
    finally:
        end_process(daemon.process)
        if prometheus:
            end_process(prometheus.process)


@limit(60)
@needs("root", "bpf")
def test_hostile_clients(ctx):
    daemon = Daemon(ctx)
    idle = []
    try:
        descriptors = len(list(pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
        for _ in range(40):  # more than it takes, none of which says anything
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.setblocking(False)
            try:
                client.connect(daemon.control)
            except BlockingIOError:  # its queue is full
                client.close()
                break
            idle.append(client)
        with socket.create_connection(("127.0.0.1", daemon.port)) as web:
            web.sendall(b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n")
        with socket.create_connection(("127.0.0.1", daemon.port)) as web:
            web.sendall(bytes(range(256)) * 4)
        assert "whyidle_budget_ratio" in daemon.get()  # the port is not held up
        for client in idle:
            client.close()
        assert "error" in daemon.ask("x" * 200)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(daemon.control)
            client.settimeout(20)
            client.sendall(b"y" * 300)  # too long, and no end of the line: dropped
            try:
                assert client.recv(100) == b""
            except ConnectionResetError:
                pass
        wait_until(lambda: len(list(pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir())) <= descriptors,
                   "descriptors to be closed again", 30)
        assert daemon.ask("stop") == {"done": True}
        assert daemon.process.wait(timeout=30) == 0
    finally:
        end_process(daemon.process)


@limit(60)
@needs("root", "bpf")
def test_a_flood_of_scrapes(ctx):
    """Costs no more than a part of the budget, and whoever asks besides gets an answer."""
    daemon = Daemon(ctx)
    answered, stop = [0] * 4, threading.Event()

    def flood(i):
        while not stop.is_set():
            try:
                daemon.get()
                answered[i] += 1
            except OSError:  # it is ended while it answers
                assert stop.is_set()

    threads = [threading.Thread(target=flood, args=(i,)) for i in range(len(answered))]
    try:
        for thread in threads:
            thread.start()
        time.sleep(3)  # what may come at once has come
        begin, own, count = time.monotonic(), own_cpu_ns(daemon), sum(answered)
        time.sleep(6)
        assert "whyidle_budget_ratio" in daemon.get()
        took = time.monotonic() - begin
        used, rate = (own_cpu_ns(daemon) - own) / took / 1e9, (sum(answered) - count) / took
        stop.set()
        assert used <= 0.005, f"the daemon used {used * 100:.2f} % of a CPU for {rate:.0f} answers a second"
        assert rate > 0, daemon.get()
        return f"{rate:.1f} answers/s, own CPU {used * 100:.2f} %"
    finally:
        stop.set()
        end_process(daemon.process)
        for thread in threads:
            thread.join()
