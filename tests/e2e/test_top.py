# SPDX-License-Identifier: GPL-2.0-only
"""The live view: on terminals of all sizes and kinds, with keys, signals, and a daemon that comes and goes."""
import fcntl
import json
import os
import pathlib
import signal
import socket
import struct
import termios
import threading

from harness import alone, end_process, limit, needs, wait_until
from terminal import Terminal
from test_daemon import Daemon
from vt100 import Vt100

BESIDE_OTHERS = True

MODES = termios.ICANON | termios.ECHO


def status(*processes, window=True):
    """A daemon's answer: a GPU that waits for the first process."""
    causes = [{"code": "wait.lock", "role": "launcher", "ns": 600, "threads": [{"comm": "train", "pid": 10}]},
              {"code": "host.gil", "role": "thread", "ns": 150, "threads": []}]
    gap = {"start_ns": 0, "end_ns": 400, "chain": [{"pid": 10, "tid": 10, "comm": "train", "code": "wait.lock",
                                                    "start_ns": 0, "end_ns": 400}]}
    report = {"source": {"gpu_timeline": "inferred"}, "findings": [],
              "gpus": [{"device": 0, "name": "H\x1b[2J200", "busy_ns": 250, "idle_ns": 750, "causes": causes,
                        "top_gaps": [gap]}]}
    return {"schema": "whyidle.status/1", "version": "9", "uptime_ns": 5000000000,
            "budget": {"share": 0.005, "state": "full", "met": True, "standing": 0.001, "slowdown": 0, "interval_s": 10,
                       "next_window_s": 3},
            "processes": [dict({"container": "", "pod": "", "cpu": 1.0, "runqueue": 0, "disk": 0, "switches": 0,
                                "launches_per_s": 0, "threads": 3, "processes": 1, "idle": None, "observed_ns": 1000,
                                "causes": []}, **process) for process in processes],
            "window": {"serial": 1, "start_ms": 0, "length_ns": 1000, "reason": "schedule", "report": report}
            if window else None}


TRAIN = {"pid": 10, "process": "train\x1b]0;evil\x07", "idle": 0.6, "cpu": 0.5,
         "causes": [{"device": 0, "code": "wait.lock", "role": "launcher", "comm": "train", "tid": 10, "ns": 600}]}
SERVE = {"pid": 20, "process": "serve", "idle": 0.1, "cpu": 2.0, "pod": "a-pod"}


class FakeDaemon:
    """Answers every client with .status; what a real one says depends on the machine."""

    def __init__(self, ctx, first):
        self.status, self.asked, self.path = first, 0, ctx.path("control")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                if client.makefile().readline() == "status\n":  # not of one that was ended meanwhile
                    self.asked += 1
                    client.sendall(json.dumps(self.status).encode())

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)


class Top:
    """whyidle top in a terminal of a kind and a size, and what that shows."""

    def __init__(self, ctx, daemon, *options, kind="xterm", size=(80, 24), **environment):
        # The command waits until the terminal has its size.
        variables = [f"{name}={value}" for name, value in {"TERM": kind, "LC_ALL": "C.UTF-8", **environment}.items()]
        self.terminal = Terminal("/usr/bin/env", "-u", "LINES", "-u", "COLUMNS", "-u", "NO_COLOR", *variables, "/bin/sh",
                                 "-c", 'read -r go; exec "$@"', "sh", ctx.whyidle, "top", "--interval", "200ms",
                                 "--control", daemon.path, *options)
        self.file, self.rest = self.terminal._fd, b""
        self.modes = self.local_modes()
        self.vt100 = Vt100(*size)
        self.set_size(*size)
        self.terminal.press(b"go\n")

    def local_modes(self):
        return termios.tcgetattr(self.file)[3] & MODES

    def set_size(self, width, height):
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def look(self):
        """Takes in what was written so far."""
        data = self.terminal.take()
        if data:
            self.rest = self.vt100.feed(self.rest + data)

    def shows(self, *texts, timeout=20):
        def seen():
            self.look()
            return all(text in self.vt100.text() for text in texts)
        try:
            wait_until(seen, texts, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; on the terminal:\n{self.vt100.text()}") from error
        return self.vt100.text()

    def hides(self, text):
        wait_until(lambda: self.look() or text not in self.vt100.text(), f"'{text}' to go")

    def press(self, keys, *texts):
        self.terminal.press(keys)
        return self.shows(*texts)

    def end(self, wanted, keys=b"q"):
        if keys:
            self.terminal.press(keys)
        self.terminal.read()
        assert self.local_modes() == self.modes, "the terminal is not as it was"
        ended = self.terminal.wait()
        assert ended == wanted, ended


@limit(60)
@needs()
def test_keys(ctx):
    daemon = FakeDaemon(ctx, status(TRAIN, SERVE))
    top = Top(ctx, daemon)
    text = top.shows("GPU 0 H\\x1b[2J200", "[###########aaaaaaaaaaaaaaaaaaaaaaaaaabbbbbbb] busy 25.0 %, idle 75.0 %",
                     "worst gap 400 ns: 400 ns train (10): waiting for a lock that another thread", "10 train\\x1b]",
                     "q quit  Enter process  s sort: idle")
    assert text.index(" 10 train") < text.index(" 20 serve") and len(text.splitlines()) == 24, text
    assert top.local_modes() == 0
    text = top.press(b"s", "sort: cpu")
    assert text.index(" 20 serve") < text.index(" 10 train"), text
    text = top.press(b"r", "sort: cpu (reverse)")
    assert text.index(" 10 train") < text.index(" 20 serve"), text
    top.press(b"/A-P", "filter: A-P_")
    top.hides(" 10 train")
    top.press(b"\r", "/ filter: A-P")
    top.press(b"\x1b", " 10 train", " 20 serve")
    top.press(b"\x1bOB\r", "Process 20 serve", "in a-pod", "Esc back")
    top.press(b"?", "any key: back")
    top.press(b"x", "Process 20 serve")
    daemon.status = status(TRAIN)
    top.shows("It uses no GPU any more.")
    top.press(b"\x1b", " 10 train", "Enter process")
    top.press(b"\n", "Process 10 train", "because of it for 60.0 % of the last window:")
    top.press(b"\x1bOD", "Enter process")
    # Paused, it asks no more; then it goes on.
    top.press(b"p", "; paused")
    asked = daemon.asked
    daemon.status = status(SERVE)
    top.press(b"s", "sort: nocpu", "10 train")
    assert daemon.asked == asked
    top.press(b"p", "20 serve")
    top.hides("; paused")
    top.end(0)


@limit(60)
@needs()
def test_terminals_and_sizes(ctx):
    daemon = FakeDaemon(ctx, status(TRAIN, SERVE))
    for kind, colours, environment in (("xterm-256color", True, {}), ("linux", True, {}), ("vt100", False, {}),
                                       ("xterm", False, {"NO_COLOR": "1"}), ("xterm", True, {"LC_ALL": "C"})):
        top = Top(ctx, daemon, kind=kind, **environment)
        top.shows("GPU 0 H", "aaaabbb", "20 serve", "q quit")
        assert bool(top.vt100.colours) == colours, (kind, top.vt100.colours)
        top.end(0)
    top = Top(ctx, daemon, size=(80, 10))
    top.shows("  0 [####", "20 serve", "q quit")
    # In a smaller one there is what fits, and afterwards all of it again.
    for size, texts in (((30, 8), ("whyidle 9", "q quit")), ((7, 2), ("whyidle", "q quit")), ((1, 1), ("q",)),
                        ((200, 60), ("GPU 0 H", "20 serve", "q quit"))):
        top.look()
        top.vt100.resize(*size)
        top.set_size(*size)
        top.press(b"\x0c", *texts)
    top.end(0)


@limit(60)
@needs()
def test_without_a_screen(ctx):
    """One clear line, and plain text."""
    daemon = FakeDaemon(ctx, status(TRAIN))
    for kind, why in (("dumb", "cannot place its cursor"), ("no-such-terminal", "is not known"), ("", "is not known")):
        top = Top(ctx, daemon, "--once", kind=kind)
        assert b"plain text only" not in top.terminal.read(until=b"10 train")
        assert top.terminal.wait() == 0
        top = Top(ctx, daemon, kind=kind)
        shown = top.terminal.read(until=b"IN\r\n").decode()  # and on, until it is ended
        assert shown.count("whyidle: plain text only") == 1 and why in shown, shown
        assert "\x1b" not in shown, shown
        top.terminal.press(b"\x03")
        assert top.terminal.wait() == -signal.SIGINT
    for options in ("--once",), ("--batch", "--once"):
        done = ctx.run(ctx.whyidle, "top", "--control", daemon.path, *options, "--filter", "none")
        assert done.status == 0 and not done.err and "No process with 'none' uses a GPU." in done.out, done
    daemon.status = status(window=False)
    done = ctx.run(ctx.whyidle, "top", "--control", daemon.path, "--once")
    assert "There was no window yet" in done.out and "No process uses a GPU." in done.out, done
    assert max(map(len, done.out.splitlines())) <= 80, done


@limit(60)
@needs()
def test_signals_and_a_daemon_that_goes(ctx):
    daemon = FakeDaemon(ctx, status(TRAIN))
    for number in signal.SIGTERM, signal.SIGINT:
        top = Top(ctx, daemon)
        top.shows("10 train")
        if number == signal.SIGINT:
            top.terminal.press(b"\x03")
        else:
            os.kill(top.terminal.command(), number)
        top.end(-number, keys=None)
    top = Top(ctx, daemon)
    top.shows("10 train")
    daemon.stop()
    top.shows("10 train", "no daemon answers")  # what was known stays, and a line says what is missing
    top.hides("q quit")
    daemon = FakeDaemon(ctx, status(SERVE))
    top.shows("20 serve", "q quit")
    top.end(0)
    daemon.stop()
    top = Top(ctx, daemon)
    shown = top.terminal.read().decode()
    assert shown.count("whyidle: ") == 1 and "\x1b" not in shown, shown
    assert top.terminal.wait() == 1


@alone
@limit(60)
@needs("root", "bpf")
def test_a_real_daemon(ctx):
    workload = ctx.start(ctx.sim("lock_wait"), "--seconds", "50")
    daemon = Daemon(ctx, "--budget", "50%")
    daemon.path = daemon.control
    try:
        top = Top(ctx, daemon, "--filter", str(workload.pid))
        top.shows(f"{workload.pid} lock_wait", "GPU 0 ", "idle ", timeout=30)
        top.press(b"\r", f"Process {workload.pid} lock_wait")
        end_process(workload)
        top.shows("It uses no GPU any more.")
        top.end(0)
        assert pathlib.Path(daemon.control).exists()
    finally:
        end_process(daemon.process)
        end_process(workload)
