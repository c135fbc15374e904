#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Fetches versions of CPython that this machine does not have, for the tests of Python frames.

    pythons.py FOLDER VERSION...        # 3.14, as in `make pythons`

Takes Debian's packages of any release that has them, with all they need, by apt and with its checks of signatures; nothing
is installed. Each version is unpacked into FOLDER/VERSION/root, and FOLDER/VERSION/python runs it in there (chroot, in a
mount namespace of its own, so as root). What is there already stays.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

SUITES = ("bullseye", "bookworm", "trixie", "forky", "sid")
MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MERGED = ("bin", "lib", "lib64", "sbin")  # links to the same below usr, which no package of these brings
SHARED = ("/proc", "/dev", "/tmp")

WRAPPER = """#!/bin/sh
# Python {version} in a root of its own, which has {shared} in the same places.
exec unshare -m sh -c 'set -e
	for folder in {shared}; do mkdir -p {root}"$folder"; mount --rbind "$folder" {root}"$folder"; done
	exec chroot {root} /usr/bin/python{version} "$@"' sh "$@"
"""


def configure(folder):
    """A configuration of apt that knows these suites and takes nothing for installed."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text("".join(f"deb [signed-by={KEYRING}] {MIRROR} {suite} main\n" for suite in SUITES), encoding="ascii")
    architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()
    (folder / "apt.conf").write_text(f"""Dir::State "{folder}";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "{architecture}";
APT::Sandbox::User "{os.environ.get('USER') or 'root'}";
APT::Install-Recommends "false";
""", encoding="ascii")
    return {**os.environ, "APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}


def run(environment, *argv):
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"pythons.py: {' '.join(argv)}: {done.stderr.strip() or done.returncode}")


def unpack(archives, folder, version):
    root = folder / "root"
    shutil.rmtree(folder, ignore_errors=True)
    root.mkdir(parents=True)
    for package in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    for name in MERGED:
        if not (root / name).exists() and (root / "usr" / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    shared = " ".join([*SHARED, str(pathlib.Path(__file__).resolve().parents[1])])
    python = folder / "python"
    python.write_text(WRAPPER.format(version=version, root=root, shared=shared), encoding="ascii")
    python.chmod(0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("versions", nargs="+")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    wanted = [version for version in arguments.versions if not (folder / version / "python").exists()]
    if not wanted:
        return
    if not shutil.which("apt-get") or not os.path.exists(KEYRING):
        sys.exit("pythons.py: other versions are taken from Debian's packages: apt and debian-archive-keyring are needed")
    apt = folder / "apt"
    environment = configure(apt)
    run(environment, "apt-get", "-q", "update")
    for version in wanted:
        shutil.rmtree(apt / "cache/archives", ignore_errors=True)
        (apt / "cache/archives/partial").mkdir(parents=True)
        run(environment, "apt-get", "-qy", "--download-only", "install", f"python{version}")
        unpack(apt / "cache/archives", folder / version, version)
        print(f"{folder / version / 'python'}")
    shutil.rmtree(apt)


if __name__ == "__main__":
    main()
