# SPDX-License-Identifier: GPL-2.0-only
"""The daemon for a long time: targets come and go, the disk is full, it is killed and starts again, Prometheus scrapes.

Windows follow each other at once, by request. SOAK=20m goes on for so long (also s, h), and has a daemon at its defaults
watched for the same time.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import time

from harness import end_process, limit, needs, wait_until
from test_daemon import Daemon, Prometheus, free_port, own_cpu_ns

MOST_MEMORY = 64 << 20
GROWTH = 2 << 20  # of memory, after a first part
ROUNDS = 3        # at least


def soak_seconds():
    text = os.environ.get("SOAK", "0s")
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


class SmallDisk:
    """A file system of a few MiB in a mount namespace that lives as long as this object's process."""

    def __init__(self, ctx, folder, size):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.process = ctx.start("unshare", "-m", "sh", "-c",
                                 f"mount -t tmpfs -o size={size} tmpfs '{folder}' && exec sleep infinity")
        own = os.readlink("/proc/self/ns/mnt")
        wait_until(lambda: os.readlink(f"/proc/{self.process.pid}/ns/mnt") != own and
                   f" {folder} tmpfs" in pathlib.Path(f"/proc/{self.process.pid}/mounts").read_text(), "a small disk")
        self.prefix = ("nsenter", "-t", str(self.process.pid), "-m")

    def fill(self):
        """To the last byte. The error of dd is what is wanted."""
        done = subprocess.run([*self.prefix, "dd", "if=/dev/zero", f"of={self.folder}/filler", "bs=64k"],
                              capture_output=True, text=True, check=False)
        assert "No space left" in done.stderr, done.stderr

    def clear(self):
        subprocess.run([*self.prefix, "rm", f"{self.folder}/filler"], check=True)


def resources(pid):
    """(descriptors, those of BPF objects, resident bytes)"""
    links = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(entry))
        except FileNotFoundError:
            pass
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    memory = int(status.split("VmRSS:")[1].split()[0]) << 10
    return len(links), sum("bpf" in link for link in links), memory


def quiet(daemon):
    """The resources while no client of ours has any: the least of some looks, each after a client has come and gone."""
    looks = []
    for _ in range(10):
        daemon.ask("kept")
        looks.append(resources(daemon.process.pid))
    return tuple(min(look[i] for look in looks) for i in range(3))


def scraped(prometheus):
    wait_until(lambda: prometheus.query('up{job="whyidle"} == 1') and prometheus.query("whyidle_windows_total > 0"),
               "a scrape", 60)


def window(daemon):
    """Makes one and waits for it; a failed one counts too."""
    ended = daemon.value("whyidle_windows_total") + daemon.value("whyidle_window_failures_total")
    assert daemon.ask("window") == {"done": True}
    wait_until(lambda: daemon.value("whyidle_windows_total") + daemon.value("whyidle_window_failures_total") > ended,
               "the end of a window", 30)


def come_and_go(ctx, daemon):
    """A target appears, is in a window, and goes."""
    workload = ctx.start(ctx.sim("lock_wait"), "--seconds", "30")
    try:
        wait_until(lambda: any(p["pid"] == workload.pid for p in daemon.ask("status")["processes"]), "a target", 30)
        window(daemon)
    finally:
        end_process(workload)
    wait_until(lambda: all(p["pid"] != workload.pid for p in daemon.ask("status")["processes"]), "its end", 30)


def full_disk(daemon, disk):
    """Windows fail or are cut, the daemon stays; when there is room again they come again."""
    disk.fill()
    lost = daemon.value("whyidle_window_failures_total") + daemon.value("whyidle_lost_records_total")
    window(daemon)
    wait_until(lambda: daemon.events("window_failed") or daemon.events("history_failed") or
               daemon.value("whyidle_window_failures_total") + daemon.value("whyidle_lost_records_total") > lost,
               "word of the full disk", 30)
    disk.clear()
    good = daemon.value("whyidle_windows_total")
    window(daemon)
    assert daemon.value("whyidle_windows_total") > good, "no window after there was room again"


def kill_and_start(ctx, daemon, disk, options):
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()
    daemon = Daemon(ctx, *options, prefix=disk.prefix)
    assert daemon.value('whyidle_history_sessions{kind="windows"}') > 0, "the history is gone"
    return daemon


@limit(60 + 2 * soak_seconds())
@needs("root", "bpf", "namespace")
def test_soak(ctx):
    port = free_port()
    options = ["--listen", f"127.0.0.1:{port}", "--budget", "90%", "--interval", "60s", "--window", "200ms",
               "--history-size", "2M"]
    disk = SmallDisk(ctx, ctx.path("history"), "4m")
    workload = ctx.start(ctx.sim("lock_wait"), "--seconds", str(int(100 + 2 * soak_seconds())))
    prometheus = daemon = None
    try:
        daemon = Daemon(ctx, *options, prefix=disk.prefix)
        if shutil.which("prometheus") and shutil.which("promtool"):
            prometheus = Prometheus(ctx, port)
        wait_until(lambda: daemon.value("whyidle_windows_total") > 0, "a window", 40)
        full_disk(daemon, disk)
        daemon = kill_and_start(ctx, daemon, disk, options)
        come_and_go(ctx, daemon)
        window(daemon)
        if prometheus:
            scraped(prometheus)  # its connection stays open
        first, end, rounds, most = quiet(daemon), time.monotonic() + soak_seconds(), 0, 0
        while rounds < ROUNDS or time.monotonic() < end:
            window(daemon)
            if rounds % 10 == 1:
                come_and_go(ctx, daemon)
            rounds, most = rounds + 1, max(most, resources(daemon.process.pid)[2])
        # Connections that were left to their time-out end; what leaks stays. Prometheus has one, or has just closed it.
        wait_until(lambda: quiet(daemon)[0] <= first[0] + bool(prometheus),
                   f"descriptors to be closed: there were {first}, there are {quiet(daemon)}")
        last = quiet(daemon)
        assert last[1] == first[1], f"descriptors of BPF leak: {first} became {last}"
        assert last[2] <= first[2] + GROWTH and most <= MOST_MEMORY, f"memory: {first} became {last}, at most {most}"
        assert daemon.value('whyidle_history_bytes{kind="windows"') <= 2 << 20
        if prometheus:
            scraped(prometheus)
        assert daemon.ask("stop") == {"done": True}
        assert daemon.process.wait(timeout=30) == 0
        return (f"{rounds} windows; {first[2] >> 10} KiB at first, {last[2] >> 10} at the end, at most {most >> 10}; "
                f"{last[0]} descriptors, {last[1]} of BPF")
    finally:
        for process in (daemon and daemon.process, prometheus and prometheus.process, workload, disk.process):
            if process:
                end_process(process)


OWN_CPU = 0.005   # of one core, without windows' processes
LOOK_SECONDS = 2
LEAST_SECONDS = 8


@limit(120 + soak_seconds())
@needs("root", "bpf")
def test_at_defaults(ctx):
    """What the daemon itself costs at its default budget and interval. It is left alone: answers cost CPU time too."""
    seconds = max(soak_seconds(), LEAST_SECONDS)
    workload = ctx.start(ctx.sim("lock_wait"), "--seconds", str(int(100 + seconds)))
    daemon = Daemon(ctx)
    try:
        wait_until(lambda: daemon.value("whyidle_windows_total") > 0, "a window", 40)
        memory, own, begin = [resources(daemon.process.pid)[2]], own_cpu_ns(daemon), time.monotonic()
        spent = daemon.value("whyidle_overhead_cpu_seconds_total")
        while time.monotonic() < begin + seconds:
            time.sleep(LOOK_SECONDS)
            memory.append(resources(daemon.process.pid)[2])
        took = time.monotonic() - begin
        share, windows = (own_cpu_ns(daemon) - own) / took / 1e9, daemon.value("whyidle_windows_total")
        spent = (daemon.value("whyidle_overhead_cpu_seconds_total") - spent) / took
        settled = memory[len(memory) // 10]
        assert share <= OWN_CPU, f"{share * 100:.2f} % of a core"
        assert max(memory) <= MOST_MEMORY and max(memory) <= settled + GROWTH, memory
        return (f"{took:.0f} s, {windows:.0f} windows, {len(daemon.events('budget_step'))} budget steps: the daemon {share * 100:.3f} % of a core, with its windows "
                f"{spent * 100:.3f} %; {memory[0] >> 10} KiB at first, {settled >> 10} after a tenth, at most "
                f"{max(memory) >> 10}")
    finally:
        end_process(daemon.process)
        end_process(workload)
