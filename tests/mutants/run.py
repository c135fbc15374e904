#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make mutants: breaks one rule of attribution at a time, and demands that the unit test named for it fails.

    run.py [--build DIR] [-k WORD]... [--others]   build and run (some minutes)
    run.py --check                                 only: does the table still fit the sources (a second)

The rules and their tests stand in table.py. A copy of the sources in DIR/mutants is changed, never this one. The named
tests must pass there before anything is changed. --others runs all tests of the named files on each mutation and tells
which others fail. Exit status 1 if a mutation is not noticed, does not build, or no longer fits the sources.
"""
import argparse
import filecmp
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import table

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ["bpf", "cupti_bridge", "tests", "userspace", "vmlinux"]
SUFFIXES = {"", ".S", ".c", ".cc", ".css", ".h", ".inc", ".js", ".mk"}
TEST_SECONDS = 30  # those named take well below one; one that does not end has failed
TEST = re.compile(r"^\s*Test\(\s*(\w+)\s*,\s*(\w+)", re.MULTILINE)
SUM = re.compile(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)")
FAILED = re.compile(r"^\[ *(?:FAIL|CRASH)\S*\] (\w+::\w+)", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Wrong(Exception):
    """The table does not fit the sources, or these do not build."""


def tests_by_file():
    """{"suite/test": file} of all unit tests."""
    found = {}
    for path in sorted((ROOT / "tests/unit").glob("*.c")):
        for suite, test in TEST.findall(path.read_text()):
            found[f"{suite}/{test}"] = path
    return found


def misfits():
    """What of the table does not fit the sources, one line each."""
    tests = tests_by_file()
    names = set()
    for mutation in table.MUTATIONS:
        if mutation.name in names:
            yield f"{mutation.name}: two mutations have this name"
        names.add(mutation.name)
        if mutation.test not in tests:
            yield f"{mutation.name}: there is no test {mutation.test}"
        for edit in mutation.edits:
            path = ROOT / edit.file
            times = path.read_text().count(edit.old) if path.exists() else 0
            if times != 1:
                yield f"{mutation.name}: {edit.file} holds {times} times, not once: {edit.old!r}"
            if edit.old == edit.new:
                yield f"{mutation.name}: changes nothing"


def check():
    wrong = list(misfits())
    for line in wrong:
        print(line, file=sys.stderr)
    bad = len({line.split(":")[0] for line in wrong})
    print(f"mutants-check: {len(table.MUTATIONS) - bad} passed, {bad} failed")
    return not wrong


def wanted_files():
    yield pathlib.Path("Makefile")
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES:
                yield path.relative_to(ROOT)


def sync(tree):
    """Makes `tree` hold the sources as they are; only what differs gets a new time, so that only that is built."""
    wanted = set(wanted_files())
    for path in wanted:
        copy = tree / path
        if not copy.exists() or not filecmp.cmp(ROOT / path, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, copy)
    for folder in FOLDERS:
        for path in (tree / folder).rglob("*"):
            if path.is_file() and path.relative_to(tree) not in wanted:
                path.unlink()


class Tree:
    def __init__(self, build):
        self.path = pathlib.Path(build).resolve() / "mutants"
        self.tests = tests_by_file()
        named = {self.tests[mutation.test] for mutation in table.MUTATIONS}
        helpers = {path for path in (ROOT / "tests/unit").glob("*.c") if not TEST.search(path.read_text())}
        self.sources = sorted(str(path.relative_to(ROOT)) for path in named | helpers)
        sync(self.path)
        (self.path / "build/unit-tests").unlink(missing_ok=True)

    def make(self):
        """Builds without sanitizers and optimisation, for it is built often. Raises Wrong with the first error."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        done = subprocess.run(
            ["make", "-j", str(os.cpu_count()), "--no-print-directory", "BUILD=build", "SANITIZE=-O0 -g0", "WARN=",
             "UNIT_SOURCES=" + " ".join(self.sources), "build/unit-tests"],
            cwd=self.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            errors = [line for line in done.stdout.splitlines() if "rror" in line]
            raise Wrong("DOES NOT BUILD: " + (errors + ["no message"])[0])

    def run(self, pattern):
        """(tests run, tests that passed, names of those that failed); None if they do not end."""
        # Criterion's own limit of time ends the test, and then waits for it for ever.
        tests = subprocess.Popen(["build/unit-tests", "--filter", pattern], cwd=self.path, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        try:
            output = COLOUR.sub("", tests.communicate(timeout=TEST_SECONDS)[0])
        except subprocess.TimeoutExpired:
            os.killpg(tests.pid, signal.SIGKILL)
            tests.communicate()
            return None
        found = SUM.search(output)
        if not found:
            raise Wrong("the tests ended without a sum:\n" + output[-2000:])
        return int(found[1]), int(found[2]), sorted({name.replace("::", "/") for name in FAILED.findall(output)})

    def passes(self, test):
        result = self.run(test)
        if result and result[0] != 1:
            raise Wrong(f"{result[0]} tests are called {test}")
        return bool(result) and result[1] == 1

    def change(self, mutation):
        for edit in mutation.edits:
            path = self.path / edit.file
            path.write_text(path.read_text().replace(edit.old, edit.new))

    def restore(self, mutation):
        for edit in mutation.edits:
            shutil.copyfile(ROOT / edit.file, self.path / edit.file)


def judge(tree, mutation, others):
    """"noticed", or what is wrong."""
    tree.change(mutation)
    try:
        tree.make()
        verdict = "NOT NOTICED" if tree.passes(mutation.test) else "noticed"
        if others:
            result = tree.run("*/*")
            verdict += ", also by: " + ", ".join(set(result[2]) - {mutation.test} if result else ["no end"])
        return verdict
    except Wrong as wrong:
        return str(wrong)
    finally:
        tree.restore(mutation)


def run(build, words, others):
    start = time.monotonic()
    chosen = [mutation for mutation in table.MUTATIONS
              if not words or any(word in f"{mutation.name} {mutation.test}" for word in words)]
    if not chosen:
        raise Wrong("no mutation has such a name")
    tree = Tree(build)
    tree.make()
    for test in sorted({mutation.test for mutation in chosen}):
        if not tree.passes(test):
            raise Wrong(f"{test} fails without a mutation")
    print("| rule that was broken | test that must fail | |\n|---|---|---|")
    survived = 0
    for mutation in chosen:
        verdict = judge(tree, mutation, others)
        survived += not verdict.startswith("noticed")
        print(f"| {mutation.name}: {mutation.rule} | {mutation.test} | {verdict} |", flush=True)
    print(f"mutants: {len(chosen) - survived} of {len(chosen)} noticed, in {time.monotonic() - start:.0f} s")
    return not survived


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--others", action="store_true")
    parser.add_argument("-k", dest="words", action="append", default=[])
    options = parser.parse_args()
    try:
        if not check():
            return 1
        return 0 if options.check or run(options.build, options.words, options.others) else 1
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
