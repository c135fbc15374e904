#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the scripts of this folder, with stand-ins for whyidle and for the workloads: no GPU, no PyTorch, no root.

    python3 tests/gpu/test_scripts.py
"""
import decimal
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import tarfile
import tempfile
import unittest

import busy_agreement
import capture
import cost
import cupti_taken
import daemon_cost
import harness
import inferred
import names
import pack
import ranks
import tables
import workloads

HERE = pathlib.Path(__file__).resolve().parent

# Records by running the command; its "session" holds the command. Reports what lies beside the recorded script.
STAND_IN = """#!/usr/bin/env python3
import json, os, pathlib, subprocess, sys
if sys.argv[1] == "daemon":
    import socket
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(sys.argv[sys.argv.index("--control") + 1])
    listener.listen()
    print("half a line", json.dumps({"event": "degraded", "text": "no counters"}), json.dumps({"event": "started"}),
          sep="\\n", file=sys.stderr, flush=True)
    shown = 0
    while True:
        client = listener.accept()[0]
        assert client.recv(100) == b"metrics\\n"
        shown += 1
        windows = 0 if "--interval" in sys.argv else 3 * (shown - 1)
        client.sendall(json.dumps({"metrics": f'''# TYPE whyidle_windows_total counter
whyidle_windows_total{{reason="schedule"}} {windows}
whyidle_budget_state{{state="full"}} 0
whyidle_budget_state{{state="short"}} 1
whyidle_lost_records_total{{place="bpf_ring"}} {shown}
whyidle_overhead_cpu_seconds_total{{part="daemon"}} {shown}
whyidle_launch_slowdown_ratio 0.05
'''}).encode())
        client.close()
if sys.argv[1] == "record":
    cut = sys.argv.index("--")
    options, command = sys.argv[2:cut], sys.argv[cut + 1:]
    pathlib.Path(options[options.index("-o") + 1]).write_text(json.dumps(command))
    slower = "1.5" if "--slow" in options else os.environ.get("SLOWER", "1.1")
    sys.exit(subprocess.run(command, env={**os.environ, "RATE_DIVISOR": slower}).returncode)
command = json.loads(pathlib.Path(sys.argv[2]).read_text())
canned = next(pathlib.Path(word).with_suffix(".report") for word in command if word.endswith(".py"))
if "--json" not in sys.argv:
    print("text report", " ".join(sys.argv[3:]))
elif canned.exists():
    print(canned.read_text())
else:
    sys.exit("no report here")
"""

WORKLOAD = """
import json, os, sys, time
truth = {truth}
rate = 100 / float(os.environ.get("RATE_DIVISOR", 1))
print("a line of the program's own")
print(json.dumps({{"workload": os.path.basename(__file__)[:-3], "steps_per_s": rate, "start_ns": 10**12,
                  "end_ns": 10**12 + 10**9, "pid": os.getpid(), "gpu_idle_ms_est": 400, **truth}}))
{end}
"""


def gpu(causes, busy=600_000_000, idle=None):
    listed = [{"code": c.split("@")[0], "role": c.split("@")[1], "ns": ns, "detail": {"python": where}}
              for c, ns, where in causes]
    return {"device": 0, "busy_ns": busy, "idle_ns": sum(c["ns"] for c in listed) if idle is None else idle,
            "op_count": 5000, "causes": listed}


def document(*gpus, findings=()):
    return {"gpus": list(gpus), "degraded": ["no samples"], "losses": {"bpf_ring": 0, "cupti": 0}, "findings":
            [dict(zip(("code", "role"), f.split("@"))) for f in findings]}


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.whyidle = self.folder / "whyidle"
        self.whyidle.write_text(STAND_IN)
        self.whyidle.chmod(0o755)
        (self.folder / "programs").mkdir()

    def plant(self, name, truth=None, answer=None, end=""):
        script = self.folder / "programs" / f"{name}.py"
        script.write_text(WORKLOAD.format(truth=truth or {}, end=end))
        if answer is not None:
            script.with_suffix(".report").write_text(json.dumps(answer))

    def run_script(self, script, *arguments, **environment):
        command = [sys.executable, HERE / script, "--whyidle", self.whyidle, "--out", self.folder / "out",
                   "--workloads", self.folder / "programs", "--seconds", "0", *arguments]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **environment})
        self.assertNotIn("Traceback", done.stderr)
        return done


class Judging(unittest.TestCase):
    truth = {"expected_top": "wait.sleep", "expected_role": "worker", "also_ok": ["wait.lock@other-thread"],
             "start_ns": 0, "end_ns": 10**9}
    healthy = {"expected_top": "none", "expected_role": "main", "start_ns": 0, "end_ns": 10**9,
               "also_ok": ["host.launch_bound@main"]}

    def verdict(self, *causes, truth=None, findings=(), idle=None):
        return workloads.judge(truth or self.truth, document(gpu(causes, idle=idle), findings=findings))

    def test_top_cause_and_role_decide(self):
        self.assertEqual(self.verdict(("wait.sleep@worker", 9, ""), ("host.gil@launcher", 1, "")), "pass")
        self.assertEqual(self.verdict(("wait.lock@thread", 9, "")), "pass")
        self.assertEqual(self.verdict(("wait.sleep@launcher", 9, "")), "FAIL: wait.sleep@launcher")
        self.assertEqual(self.verdict(), "FAIL: nothing")

    def test_causes_must_sum_to_idle_time(self):
        self.assertTrue(self.verdict(("wait.sleep@worker", 9, ""), idle=10).startswith("FAIL"))

    def test_healthy(self):
        small, large = ("host.launch_bound@launcher", 30_000_000, ""), ("host.launch_bound@launcher", 31_000_000, "")
        self.assertEqual(self.verdict(small, truth=self.healthy), "pass")
        self.assertIn("also_ok allows", self.verdict(large, truth=self.healthy))
        self.assertTrue(self.verdict(small, truth=self.healthy, findings=["wait.lock@launcher"]).startswith("FAIL"))

    def test_the_busiest_gpu_is_judged(self):
        report = document(gpu([("host.gil@launcher", 5, "")], busy=1), gpu([("wait.sleep@worker", 5, "")], busy=2))
        self.assertEqual(workloads.judge(self.truth, report), "pass")
        self.assertTrue(workloads.judge(self.truth, document()).startswith("FAIL"))

    def test_agrees_with_the_judge_of_the_workloads(self):
        path = harness.default_workloads() / "judge.py"
        if not path.exists():
            self.skipTest(f"no {path}")
        judge = {"__name__": "judge"}
        exec(path.read_text(), judge)
        self.assertEqual(judge["ROLES"], workloads.ROLES)
        self.assertEqual(judge["HEALTHY_IDLE"], workloads.HEALTHY_IDLE)
        for truth in self.truth, self.healthy:
            self.assertEqual({f"{code}@{role}" for code, role in judge["accepted"](truth)},
                             set(workloads.expected_answers(truth)))


class Proof(Folder):
    sleep = {"expected_top": "wait.sleep", "expected_role": "worker"}

    def test_results_go_into_the_documents(self):
        right = document(gpu([("wait.sleep@worker", 390_000_000, ""), ("host.gil@launcher", 10_000_000, "")]))
        self.plant("a1_right", self.sleep, right)
        self.plant("a2_idle", {**self.sleep, "gpu_idle_ms_est": 600}, right)
        self.plant("a5_wrong", {**self.sleep, "gpu_idle_ms_est": 600}, document(gpu([("host.gil@launcher", 1000, "")])))
        docs = self.folder / "docs"
        docs.mkdir()
        (docs / "proof.md").write_text("# Proof\n\nfirst part\n")
        (docs / "proof.json").write_text('{"plants": 3}')
        for _ in range(2):  # the second run takes the place of the first
            done = self.run_script("proof_gpu.py", "--write", docs, "--python", "/bin/false")
            self.assertEqual(done.returncode, 1, done)
        done = self.run_script("proof_gpu.py", "--write", docs)
        words, numbers = (docs / "proof.md").read_text(), json.loads((docs / "proof.json").read_text())
        self.assertTrue(words.startswith("# Proof\n\nfirst part\n\n## On a GPU\n"), words)
        self.assertEqual(words.count("## On a GPU"), 1)
        self.assertEqual(numbers["plants"], 3)
        self.assertEqual((numbers["gpu"]["workloads"], numbers["gpu"]["workloads_top_ok"]), (3, 2))
        self.assertEqual(numbers["gpu"]["workloads_idle_ok"], 0.5)  # a5's estimate is of something else
        self.assertIn("| 400 **×** | 600 |", words)
        self.assertIn("host.gil@launcher 100% **×**", words)
        # There is no PyTorch here, and that is said.
        self.assertEqual(len(numbers["gpu"]["failures"]), 1)
        self.assertIn("- Not made: record: exit 1", words)


class Workloads(Folder):
    sleep = {"expected_top": "wait.sleep", "expected_role": "worker", "expected_symbol": "fetch"}

    def test_verdicts_and_what_is_kept(self):
        right = document(gpu([("wait.sleep@worker", 390_000_000, "x.py:3 fetch"), ("unknown.lost@device", 10_000_000, "")]))
        wrong = document(gpu([("host.gil@launcher", 1000, "")]))
        self.plant("a1_right", self.sleep, right)
        self.plant("a2_wrong", self.sleep, wrong)
        self.plant("a3_dies", self.sleep, right, end="sys.exit('it broke')")
        self.plant("a4_no_report", self.sleep)
        self.plant("a5_odd_report", self.sleep, {"gpus": [{"busy_ns": 1}]})
        self.plant("a6_no_disk", {**self.sleep, "disk_mb": 1, "fs": "tmpfs"}, right)
        done = self.run_script("workloads.py", "--only", "all", "--keep", "a1", "--bare", "--markdown",
                               self.folder / "tables.md")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 passed, 4 failed, 1 skipped", done.stdout)
        results = {r["workload"]: r for r in json.loads((self.folder / "out/workloads.json").read_text())}
        self.assertIn("- degraded (a1_right, a2_wrong, a6_no_disk): no samples", done.stdout)
        self.assertIn("it broke", results["a3_dies"]["verdict"])
        self.assertIn("no report here", results["a4_no_report"]["verdict"])
        self.assertIn("KeyError", results["a5_odd_report"]["verdict"])
        self.assertIn("tmpfs", results["a6_no_disk"]["verdict"])
        row = next(line for line in done.stdout.splitlines() if line.startswith("| a1_right"))
        for text in "wait.sleep@worker 98%", "| 98% ", "named", "100.0 → 90.9", "| 400 ":
            self.assertIn(text, row)
        self.assertEqual(sorted(p.name for p in (self.folder / "out/sessions").iterdir())[0], "a2_wrong.whyidle")
        with tarfile.open(self.folder / "out/kept-a1_right.tar.gz") as bundle:
            self.assertIn("a1_right/session.whyidle", bundle.getnames())
            self.assertIn("a1_right/report-json.stdout", bundle.getnames())
        self.assertIn("tests/gpu/workloads.py", (self.folder / "tables.md").read_text())
        window = (self.folder / "out/a1_right/report-text.stdout").read_text()
        self.assertEqual(window.strip(), "text report --window 1000000000000..1001000000000")

    def test_a_starved_process_is_judged_by_itself(self):
        self.plant("a15_two", {**self.sleep, "peer": {"x": 1}}, document(gpu([("wait.sleep@worker", 5, "")])))
        self.assertIn("1 passed, 0 failed", self.run_script("workloads.py", "--only", "a15").stdout)
        self.assertIn("--pid ", (self.folder / "out/a15_two/report-text.stdout").read_text())

    def test_nothing_starts_without_time(self):
        self.plant("a1_right", self.sleep, document())
        done = self.run_script("workloads.py", "--only", "a1", "--budget", "3")
        self.assertIn("0 passed, 0 failed, 1 skipped", done.stdout)

    def test_sigterm_ends_the_program_and_still_prints(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.plant("a1_hangs", self.sleep, end=f"open({str(pipe)!r}, 'w').write(str(os.getpid())); time.sleep(100)")
        process = subprocess.Popen([sys.executable, HERE / "workloads.py", "--whyidle", self.whyidle, "--out", self.folder,
                                    "--workloads", self.folder / "programs", "--seconds", "0", "--only", "a1"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertTrue(select.select([reader], [], [], 60)[0], "the workload was not started")
        child = os.pidfd_open(int(os.read(reader, 20)))
        self.addCleanup(os.close, child)
        process.terminate()
        self.assertIn("0 passed, 1 failed", process.communicate(timeout=60)[0])
        self.assertTrue(select.select([child], [], [], 10)[0], "the workload has not ended")


class DaemonCost(Folder):
    def test_pairs_and_what_the_daemon_said(self):
        self.plant("a5_tiny")
        self.plant("a12_dies", end="sys.exit('it broke')")
        done = self.run_script("daemon_cost.py", "--pairs", "2", "--programs", "a5,a12")
        self.assertEqual(done.returncode, 1)
        rows = json.loads((self.folder / "out/daemon.json").read_text())
        self.assertEqual([(r["program"], r["mode"], r["verdict"]) for r in rows],
                         [("a5_tiny", "t0", "-"), ("a5_tiny", "windows", "pass"), ("a12_dies", "t0", "FAIL"),
                          ("a12_dies", "windows", "FAIL")])
        self.assertEqual([len(r["ratios"]) for r in rows], [2, 2, 0, 0])
        self.assertEqual([s["windows"] for r in rows[:2] for s in r["said"]], [0, 0, 3, 3])
        self.assertEqual({s["state"] for s in rows[1]["said"]}, {"short"})
        self.assertEqual({s["lost"] for s in rows[1]["said"]}, {1})
        self.assertIn("- a5_tiny windows, 2 times: no counters", done.stdout)
        self.assertIn("it broke", done.stdout)

    def test_a_daemon_that_does_not_start_is_told(self):
        self.plant("a5_tiny")
        self.whyidle.write_text("#!/bin/sh\necho no BPF here >&2\nexit 1\n")
        done = self.run_script("daemon_cost.py", "--pairs", "1", "--programs", "a5")
        self.assertIn("no BPF here", done.stdout)
        self.assertIn("0 passed, 2 failed", done.stdout)

    def test_figures(self):
        cost = 'whyidle_overhead_cpu_seconds_total{part="capture"}'
        said = daemon_cost.told({cost: 1}, {cost: 1.5, "whyidle_launch_slowdown_ratio": 0.02}, 10, 30)
        self.assertEqual((said["cpu"], said["parts"]["capture"], said["slowdown"], said["memory"]), (5, 5, 2, 30))


class Names(Folder):
    """The stand-ins' own source is what is judged by: `work` holds the stall, `helper` is called from it."""
    source = """
def helper():
    return 1
def work():
    with stall():
        helper()
    helper()
def flush():
    with lock:
        helper()
"""
    stacks = {"sampled_frames": 1000, "sampled_frames_named": 950, "unnamed_file": "/lib/libx.so", "unnamed_in_file": 50,
              "long_waits": 100, "long_waits_complete": 95, "copied_bytes_per_s": 2e6, "sent_bytes_per_s": 1e6}

    def verdict(self, python, stack=(), cause="wait.lock@launcher", said=True, name="a1_right", **changed):
        """The verdict of a run whose report names this line. Lines are counted from those of `source`."""
        first = WORKLOAD.count("\n", 0, WORKLOAD.index("{end}"))
        truth = {"expected_top": "wait.lock", "expected_role": "main", "expected_symbol": "work",
                 "also_ok": ["wait.sleep@other-thread"]}
        self.plant(name, truth, end="lock = stall = None\n" + self.source.strip("\n"))
        shift = lambda text: text if text is None else \
            re.sub(r":(\d+)", lambda m: f":{int(m[1]) + first + 1}", text.replace("FILE", f"{name}.py"))
        found = gpu([(cause, 9, shift(python))])
        found["causes"][0]["detail"] |= {"stack": [shift(f) for f in stack], "function": "native"}
        answer = document(found, findings=[cause])
        answer["findings"][0] |= {"title": "…", "evidence": [f"Python {shift(python)}"] if said else []}
        answer["user_stacks"] = {**self.stacks, **changed}
        self.answer = truth, answer
        checks = names.judge(self.folder / f"programs/{name}.py", truth, answer)
        return next((v for v in checks if v != "pass"), "pass")

    def test_lines(self):
        self.assertEqual(self.verdict("FILE:5 work"), "pass")
        self.assertIn("is named", self.verdict("FILE:6 work"))
        self.assertIn("is named", self.verdict("other.py:5 work"))
        self.assertIn("is named", self.verdict("FILE:2 helper"))
        called = ["read (libc.so.6)", "helper (/x/FILE:2)", "work (/x/FILE:5)", "<module> (/x/FILE:20)"]
        self.assertEqual(self.verdict("FILE:2 helper", called), "pass")
        self.assertIn("is named", self.verdict("FILE:2 helper", [called[0], called[1], "work (/x/FILE:6)"]))
        self.assertIn("is named", self.verdict("FILE:2 helper", [called[2], called[1]]))
        self.assertIn("is named", self.verdict("torch.py:2 helper", ["helper (/x/torch.py:2)", called[2]]))
        self.assertIn("no line of Python, but native", self.verdict(None))

    def test_who_holds_the_lock(self):
        sleeps = {"cause": "wait.sleep@thread", "name": "a10_lock"}
        self.assertEqual(self.verdict("FILE:9 flush", **sleeps), "pass")
        self.assertIn("is named", self.verdict("FILE:5 work", **sleeps))
        self.assertEqual(self.verdict("FILE:5 work", name="a10_lock"), "pass")

    def test_everything_else_that_must_hold(self):
        self.assertIn("host.gil@thread", self.verdict("FILE:5 work", cause="host.gil@thread"))
        self.assertIn("does not say the line", self.verdict("FILE:5 work", said=False))
        self.assertIn("94.9% of 1,000 sampled functions", self.verdict("FILE:5 work", sampled_frames_named=949))
        self.assertIn("94.0% of 100 long waits", self.verdict("FILE:5 work", long_waits_complete=94))
        self.assertIn("none long waits", self.verdict("FILE:5 work", long_waits=0))

    def test_run(self):
        self.assertEqual(self.verdict("FILE:5 work"), "pass")
        truth, answer = self.answer
        source = (self.folder / "programs/a1_right.py").read_text()
        self.plant("a1_right", truth, answer, end=source[source.index("lock = "):])
        done = self.run_script("names.py", "--only", "a1")
        self.assertIn("1 passed, 0 failed", done.stdout)
        row = next(line for line in done.stdout.splitlines() if line.startswith("| a1_right"))
        for text in "wait.lock@launcher 100%", "95.0% of 1,000", "95.0% of 100", "| 2.0 ", "50 in libx.so":
            self.assertIn(text, row)
        self.assertEqual(json.loads((self.folder / "out/names.json").read_text())[0]["checks"], ["pass"] * 5)

    def test_all_places_are_found_in_the_workloads(self):
        if not harness.default_workloads().exists():
            self.skipTest("no workloads")
        for name, script in harness.find_scripts(harness.default_workloads(), names.PLANTED):
            symbol = re.search(r'expected_symbol="(\w+)"', script.read_text())[1]
            truth = {"expected_top": "x", "expected_symbol": symbol}
            places = [names.expected_place(script, truth, {"code": code}) for code in ("x", "y")]
            self.assertEqual(places[0].function, symbol)
            for place in places:
                block = script.read_text().splitlines()[place.lines[0] - 2]
                self.assertRegex(block, "with (stall|lock)", f"{name}: {place}")


class Running(Folder):
    def test_time_out(self):
        done = harness.run([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(99)"], 1, self.folder, "x")
        self.assertTrue(done.timed_out)
        self.assertEqual((done.stdout, done.status), ("1\n", -2))

    def test_nothing_is_left_of_a_program_that_ignores_signals(self):
        deaf = "import signal; [signal.signal(s, signal.SIG_IGN) for s in (2, 15)]; "
        code = deaf + "import subprocess, sys; print(subprocess.Popen(['sleep', '99']).pid, flush=True); sys.stdin.close(); " \
                      "signal.pause()"
        done = harness.run([sys.executable, "-c", code], 1, self.folder, "x")
        self.assertEqual((done.timed_out, done.status), (True, -9))
        try:  # killed, which may take a moment; if it is gone, or a zombie that nobody has waited for yet, it is ended
            child = os.pidfd_open(int(done.stdout))
        except ProcessLookupError:
            return
        self.addCleanup(os.close, child)
        self.assertTrue(select.select([child], [], [], 10)[0])

    def test_missing_program(self):
        done = harness.run([self.folder / "nothing"], 5, self.folder, "x")
        self.assertEqual(done.status, 127)
        self.assertIn("No such file", harness.what_failed(done))

    def test_json_line_is_the_last_that_fits(self):
        text = '{"workload": 1}\n{"workload": 2}\n{"other": 3}\n{broken\n'
        self.assertEqual(harness.json_line(text, "workload"), {"workload": 2})
        self.assertIsNone(harness.json_line("nothing", "workload"))

    def test_scripts_by_short_name(self):
        for name in "a1_x", "a10_y", "a2_z":
            self.plant(name)
        found = [n for n, _ in harness.find_scripts(self.folder / "programs", "a10,a1")]
        self.assertEqual(found, ["a10_y", "a1_x"])
        self.assertEqual([n for n, _ in harness.find_scripts(self.folder / "programs", "all")], ["a1_x", "a2_z", "a10_y"])

    def test_bootstrap(self):
        self.assertEqual(harness.bootstrap([2.0] * 5), (2.0, 2.0))
        low, high = harness.bootstrap([1.0, 1.1, 1.2, 1.3, 1.4])
        self.assertTrue(1.0 <= low < 1.2 < high <= 1.4)

    def test_tars_hold_what_fits(self):
        sizes = {"a": 6000, "b": 9000, "c": 3000, "d": 90000, "e": 8000}
        for name, size in sizes.items():
            (self.folder / name).write_bytes(bytes(size))
        made, left = pack.groups([str(self.folder / n) for n in sizes], 2, 12000)
        self.assertEqual([[os.path.basename(p) for p in g] for g in made], [["a", "c"], ["b"]])
        self.assertEqual([os.path.basename(p) for p in left], ["d", "e"])
        pack.main(self.folder / "t", "2", "30000", *(str(self.folder / n) for n in "abc"))
        self.assertLessEqual((self.folder / "t-1.tar").stat().st_size, 30000)


class Cost(Folder):
    def setUp(self):
        super().setUp()
        for name in "a1_x", "a5_y":
            self.plant(name, answer=document(gpu([("host.gil@launcher", 1, "")])))

    def test_slow_down_by_mode(self):
        done = self.run_script("cost.py", "--pairs", "3", "--programs", "a1,a5", "--no-profiler",
                               "--variant", "slow=--slow", "--variant", "env=SLOWER=1.25")
        rows = {(r["program"], r["mode"]): r for r in json.loads((self.folder / "out/cost.json").read_text())}
        self.assertAlmostEqual(rows["a1_x", "record"]["median"], 1.1)
        self.assertAlmostEqual(rows["a1_x", "slow"]["median"], 1.5)
        self.assertAlmostEqual(rows["a5_y", "env"]["median"], 1.25)
        self.assertEqual(rows["a1_x", "record"]["verdict"], "FAIL")  # the limit of a1 is 1.02
        self.assertEqual(rows["a5_y", "record"]["verdict"], "pass")  # that of a5 is 1.25
        self.assertEqual(rows["a5_y", "record"]["operations_per_s"], "5000")
        self.assertEqual(len(rows["a5_y", "record"]["ratios"]), 3)
        self.assertIn("1 passed, 1 failed", done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_failed_runs_are_told(self):
        self.plant("a12_dies", end="sys.exit('it broke')")
        done = self.run_script("cost.py", "--pairs", "1", "--programs", "a12", "--no-profiler")
        self.assertIn("it broke", done.stdout)
        self.assertIn("0 passed, 1 failed", done.stdout)

    def test_variant(self):
        mode = cost.variant("x=A=1 B='two words' --flag C=3")
        self.assertEqual(mode, cost.Mode("x", "record", {"A": "1", "B": "two words"}, ["--flag", "C=3"]))
        with self.assertRaises(ValueError):
            cost.variant("nothing")


class Busy(Folder):
    def event(self, start, length, category="kernel", name="k"):
        return {"ph": "X", "cat": category, "name": name, "ts": decimal.Decimal(start), "dur": decimal.Decimal(length)}

    def trace(self, events):
        path = self.folder / "trace.json"
        path.write_text(json.dumps({"traceEvents": events}, default=lambda d: float(d)))
        return path

    def test_union(self):
        self.assertEqual(busy_agreement.union([(0, 10), (5, 7), (8, 20), (30, 31)]), 21)
        self.assertEqual(busy_agreement.union([]), 0)

    def test_measured_steps_are_the_last_ones(self):
        events = []
        for step in range(5):  # the first two settle and are slower
            length = 9 if step < 2 else 2
            events += [self.event(step * 900, length), self.event(step * 900 + 1, 3, "gpu_memcpy", "copy"),
                       self.event(step * 900 + 50, 1.25, "gpu_memset", "set"), self.event(step * 900, 99, "cpu_op")]
        figures = busy_agreement.by_trace(self.trace(events), {"steps": 3, "settle_steps": 2})
        self.assertEqual((figures["busy"], figures["kernels"], figures["sum"]), (5250, 2000, 6250))
        self.assertEqual(figures["operations"], 3)
        self.assertEqual(figures["names"], {"k": 1, "copy": 1, "memset": 1})
        self.assertEqual(busy_agreement.by_trace(self.trace(events[1:]), {"steps": 3, "settle_steps": 2}), figures)
        for broken in events[:-2], events[:9] + events[10:], [*events, self.event(4600, 1)], []:
            with self.assertRaises(ValueError):
                busy_agreement.by_trace(self.trace(broken), {"steps": 3, "settle_steps": 2})

    def test_times_keep_all_digits(self):
        path = self.folder / "t.json"
        path.write_text('{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1712195495505582.988, "dur": 1.5}]}')
        self.assertEqual(busy_agreement.trace_operations(path), [(1712195495505582988, 1712195495505584488, "kernel", "k")])

    def test_comparison(self):
        ours, theirs = [{"busy": 1009.0}, {"busy": 1011.0}], [{"busy": 1000.0}]
        self.assertEqual(busy_agreement.compare("b", ours, theirs, "busy", 1, 0.011)[-1], "pass")
        self.assertEqual(busy_agreement.compare("b", ours, theirs, "busy", 1, 0.009)[-1], "FAIL")
        self.assertEqual(busy_agreement.compare("o", [{"operations": 41}], [{"operations": 42}], "operations", 0, 0)[-1], "FAIL")


class Taken(unittest.TestCase):
    def done(self, saw, status=7, result="1", stderr=""):
        return harness.Finished(status, False, 1.0, f"result during {result}\nprofiler saw {saw}\n", stderr)

    def verdict(self, recorded, operations, said=()):
        report = {"gpus": [{"busy_ns": 1, "op_count": operations}]}
        return cupti_taken.judge(self.done(5000), recorded, self.done(0, 0), report, list(said))

    def test_verdicts(self):
        quiet, warned = self.done(0), self.done(0, stderr="WARNING: CUPTI initialization failed")
        self.assertEqual(self.verdict(self.done(5000), 9000), "pass")
        self.assertEqual(self.verdict(self.done(5000), 0, ["CUPTI is in use by another tool"]), "pass")
        self.assertEqual(self.verdict(warned, 9000), "pass")
        self.assertIn("does not say why", self.verdict(self.done(5000), 10))
        self.assertIn("without a word", self.verdict(quiet, 9000))
        self.assertIn("both lost", self.verdict(warned, 0, ["CUPTI"]))
        self.assertIn("other results", self.verdict(self.done(5000, result="2"), 9000))
        self.assertIn("exit -11", self.verdict(self.done(5000, status=-11), 9000))

    def test_what_whyidle_says_is_not_the_profilers(self):
        self.assertEqual(cupti_taken.about_cupti("whyidle: CUPTI is taken\nno\n CUPTI_ERROR\n"), ["CUPTI_ERROR"])


class Capture(unittest.TestCase):
    def test_chunks(self):
        text = "torch says\nchunk 0 10 2\nchunk 10 20 2\nwhole 2\n"
        self.assertEqual(capture.chunks_of(text), ([(0, 10, 2), (10, 20, 2)], True))
        self.assertFalse(capture.chunks_of(text.replace("whole", "cut"))[1])

    def test_only_what_lies_well_within_the_recording_is_judged(self):
        second = 1_000_000_000
        chunks = [(n * second, (n + 1) * second, 2) for n in range(10)]
        kernels = [(n * second + part * second // 3, n * second + part * second // 3 + 5) for n in range(3, 8) for part in (1, 2)]
        self.assertEqual(capture.judge_chunks(chunks, 3 * second, 8 * second, kernels), (3, 0, 0))
        self.assertEqual(capture.judge_chunks(chunks, 3 * second, 8 * second, kernels[:4] + kernels[5:]), (3, 1, 0))
        self.assertEqual(capture.judge_chunks(chunks, 3 * second, 8 * second, [*kernels, (5, 6)]), (3, 0, 1))


class Tables(unittest.TestCase):
    def run_of(self, *rows):
        return {"tables": [{"name": "kernels", "rows": [dict(zip(("name", "count", "total_ns"), r)) for r in rows]}]}

    def test_kernels(self):
        ours = tables.by_tables(self.run_of(("void f<int, 2> (float*)", 10, 9_950), ("g", 4, 150)))
        theirs = tables.by_profiler({"kernels": {"void f<int,2>(float*)": [10, 10_000], "g": [4, 100], "Memcpy HtoD": [3, 9]}})
        self.assertEqual(tables.judge_counts([theirs, ours]), "pass")
        self.assertEqual([row[-1] for row in tables.judge_times([ours], [theirs])], ["pass", "pass", ""])
        slower = {**ours, tables.plain("void f<int, 2> (float*)"): (10, 10_200)}
        self.assertEqual([row[-1] for row in tables.judge_times([slower], [theirs])], ["FAIL", "FAIL", ""])
        for other in ({**ours, "g": (5, 150)}, {**ours, "h": (1, 1)}, {"g": (4, 150)}):
            self.assertIn("FAIL: counts differ for 1 of 2 names", tables.judge_counts([theirs, other]))
        self.assertIn("no kernels", tables.judge_counts([{}, {}]))

    def ranges(self, count=10, ns=995, style="PushPop", on_gpu=10):
        row = {"name": "step", "count": count, "total_ns": ns, "style": style}
        return {"tables": [{"name": "ranges", "rows": [row]},
                           {"name": "ranges-gpu", "rows": [{"name": "step", "count": on_gpu}] if on_gpu else []}]}

    def verdict(self, **changed):
        return tables.judge_ranges({"ranges": {"step": [10, 990, 1000]}}, self.ranges(**changed))["step"]

    def test_ranges(self):
        self.assertEqual(self.verdict(), "pass")
        self.assertIn("9 of 10", self.verdict(count=9))
        self.assertIn("StartEnd", self.verdict(style="StartEnd"))
        self.assertIn("989 ns", self.verdict(ns=989))
        self.assertIn("1001 ns", self.verdict(ns=1001))
        self.assertIn("not each", self.verdict(on_gpu=0))
        self.assertIn("0 of 10", tables.judge_ranges({"ranges": {"step": [10, 990, 1000]}}, {
            "tables": [{"name": "ranges", "rows": []}, {"name": "ranges-gpu", "rows": []}]})["step"])
        self.assertIn("made none", tables.judge_ranges({"ranges": {}}, self.ranges())["ranges"])


class Inferred(Folder):
    truth = {"start_ns": 0, "end_ns": 10**9, "steps_per_s": 10}

    def pair(self, cupti, inferred_idle, tops=("host.gil@launcher", "host.gil@launcher")):
        return {mode: inferred.figures(mode, self.truth, document(gpu([(top, idle, "")])) | {"source": {"gpu_timeline": mode}})
                for mode, idle, top in zip(inferred.MODES, (cupti, inferred_idle), tops)}

    def test_verdicts(self):
        self.assertEqual(inferred.judge("a1_x", [self.pair(300_000_000, 251_000_000)]), "pass")
        self.assertIn("-5.1 points", inferred.judge("a1_x", [self.pair(300_000_000, 249_000_000)]))
        other = self.pair(300_000_000, 300_000_000, ("host.gil@launcher", "wait.lock@launcher"))
        self.assertIn("top cause host.gil@launcher by CUPTI, wait.lock", inferred.judge("a4_x", [other]))
        self.assertEqual(inferred.judge("a12_x", [other]), "pass")  # only idle time is asked for there

    def test_a_recording_of_the_other_kind_proves_nothing(self):
        with self.assertRaisesRegex(ValueError, "is cupti: no samples"):
            inferred.figures("inferred", self.truth, document(gpu([])) | {"source": {"gpu_timeline": "cupti"}})
        with self.assertRaisesRegex(ValueError, "no work"):
            inferred.figures("cupti", self.truth, document(gpu([], busy=0)) | {"source": {"gpu_timeline": "cupti"}})

    def test_failures_are_told(self):
        self.plant("a4_x", answer=document(gpu([])) | {"source": {"gpu_timeline": "cupti"}})
        done = self.run_script("inferred.py", "--programs", "a4")
        self.assertIn("the timeline of the inferred run is cupti", done.stdout)
        self.assertIn("0 passed, 1 failed", done.stdout)
        self.assertEqual(done.returncode, 1)


class Ranks(Folder):
    said = [{"waits_ns": [9_000_000] * 4, "stalls": []}, {"waits_ns": [0] * 4, "stalls": [(100, 150), (200, 250)]}]

    def report(self, wait=36_000_000, slowest=1, code="wait.sleep", steps=(1, 1), findings=()):
        return {"members": [{"rank": 0, "wait_ns": wait}, {"rank": 1, "wait_ns": 0}], "slowest": slowest,
                "causes": [{"root_rank": 1, "reason": "idle", "code": code, "role": "launcher"}],
                "steps": [{"end_ns": 160 + 100 * n, "slowest": rank} for n, rank in enumerate(steps)],
                "findings": [{"kind": kind, "rank": rank, "title": kind} for kind, rank in findings]}

    def test_verdicts(self):
        def judge(expected=("idle", "wait.sleep", "launcher"), **report):
            return ranks.judge(self.report(**report), self.said, 1, expected)
        self.assertEqual(judge(), [])
        self.assertEqual(judge(wait=37_900_000), [])
        self.assertIn("rank 0 waited 36.00 ms", judge(wait=38_100_000)[0])
        self.assertIn("slowest is rank 0", judge(slowest=0)[0])
        self.assertIn("1 of 2 stalls", judge(steps=(1, 0))[0])
        self.assertIn("0 of 2 stalls", judge(steps=())[0])
        self.assertIn("largest cause rank 1: host.gc@launcher", judge(code="host.gc")[0])
        self.assertEqual(judge("checkpoint", findings=[("checkpoint", 1)]), [])
        self.assertIn("no finding checkpoint", judge("checkpoint", findings=[("checkpoint", 0)])[0])
        self.assertEqual(judge(None, findings=[("random", None)]), [])
        self.assertIn("healthy job: gc", judge(None, findings=[("gc", None)])[0])

    def test_a_report_without_ranks_proves_nothing(self):
        # A GPU is neither needed nor used: the program fails, and that is told.
        done = subprocess.run([sys.executable, HERE / "ranks.py", "--whyidle", self.whyidle, "--out", self.folder / "out",
                               "--plants", "none", "--simulated", self.folder], capture_output=True, text=True, timeout=120)
        self.assertIn("none: FAIL: exit 1", done.stdout)
        self.assertIn("0 passed, 1 failed", done.stdout)
        self.assertEqual(done.returncode, 1)


class All(Folder):
    def test_steps_tables_and_packing(self):
        self.plant("a5_right", {"expected_top": "wait.sleep", "expected_role": "worker"},
                   document(gpu([("wait.sleep@worker", 5, "")])))
        (self.folder / "tree/tests").mkdir(parents=True)
        (self.folder / "tree/tests/gpu").symlink_to(HERE)
        out = self.folder / "back"
        done = subprocess.run(
            ["bash", self.folder / "tree/tests/gpu/all.sh", "--budget", "300", "--workloads", self.folder / "programs",
             "--whyidle", self.whyidle, "workloads:--only a5 --seconds 0 --keep a5",
             "cost@200:--programs a5 --pairs 1 --seconds 0 --no-profiler --variant 'two words=A=1 --slow'",
             "cost:--programs a5 --pairs 1 --seconds 0 --no-profiler", "nonsense", "run:echo 'a  b' $((1 + 1))"],
            capture_output=True, text=True, timeout=200, env={**os.environ, "OUT": str(out)})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)  # for the unknown step
        self.assertLessEqual(len(done.stdout[done.stdout.rindex("== cost-2"):]), 12000)
        self.assertEqual(done.stdout.count("1 passed, 0 failed"), 3, done.stdout)
        self.assertIn("two words", done.stdout)
        self.assertIn("== run: last lines\na  b 2\n", done.stdout)
        self.assertEqual({p.name for p in out.iterdir()}, {"logs.tar.gz", "tables.md", "kept-a5_right.tar.gz"})
        with tarfile.open(out / "logs.tar.gz") as logs:
            self.assertIn("./workloads/a5_right/report-json.stdout", logs.getnames())


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{result.testsRun - bad - skipped} passed, {bad} failed, {skipped} skipped", flush=True)
    sys.exit(bool(bad))
