# SPDX-License-Identifier: GPL-2.0-only
"""A control group with a CPU quota, for the one thread or process that a plant puts into it. Version 1 and 2."""
import os
import pathlib

ROOT = pathlib.Path("/sys/fs/cgroup")


class NoGroup(Exception):
    """Why there is none."""


def own_path(controller):
    """Path of our own group in the hierarchy (version 1) of a controller."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    return ""


class CpuQuota:
    """with CpuQuota(period_us, quota_us) as quota: quota.folder, quota.throttled_ns()"""

    def __init__(self, period_us, quota_us):
        self.period_us, self.quota_us = period_us, quota_us
        self.folder = None
        name = f"whyidle-proof-{os.getpid()}"
        if (ROOT / "cgroup.controllers").exists():
            self.version, self.path = 2, ROOT / name
            # A group that has processes cannot pass controllers on, so ours is below the root.
            if "cpu" not in (ROOT / "cgroup.subtree_control").read_text(encoding="ascii").split():
                raise NoGroup("the cpu controller is not passed on by the root control group")
        elif (ROOT / "cpu" / "cpu.cfs_quota_us").exists() or own_path("cpu"):
            self.version, self.path = 1, ROOT / "cpu" / own_path("cpu") / name
        else:
            raise NoGroup("no CPU quota in the control groups of this machine")

    def __enter__(self):
        try:
            self.path.mkdir()
            self.folder = str(self.path)
            # The largest share of what others want too: only the quota is to hold it back.
            if self.version == 2:
                (self.path / "cpu.weight").write_text("10000", encoding="ascii")
                (self.path / "cpu.max").write_text(f"{self.quota_us} {self.period_us}", encoding="ascii")
            else:
                (self.path / "cpu.shares").write_text("262144", encoding="ascii")
                (self.path / "cpu.cfs_period_us").write_text(str(self.period_us), encoding="ascii")
                (self.path / "cpu.cfs_quota_us").write_text(str(self.quota_us), encoding="ascii")
        except OSError as error:
            self.__exit__()
            raise NoGroup(f"cannot set a CPU quota: {error}") from error
        return self

    def throttled_ns(self):
        """Time for which the group was throttled so far."""
        fields = dict(line.split() for line in (self.path / "cpu.stat").read_text(encoding="ascii").splitlines())
        return int(fields["throttled_time"]) if self.version == 1 else int(fields["throttled_usec"]) * 1000

    def __exit__(self, *_):
        if self.path.is_dir():
            self.path.rmdir()
