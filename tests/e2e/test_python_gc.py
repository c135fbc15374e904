# SPDX-License-Identifier: GPL-2.0-only
"""Garbage collection must be told from other code, also in interpreters without symbols, as distributions have them."""
import json
import os
import pathlib

from harness import Skip, cause_key, limit, needs
from test_names import PYTHON_STALL, other_pythons, packaged_pythons, version_key

# Samples close together: on a busy machine a stretch on the CPU may be shorter than the usual period.
OPTIONS = "-q", "--no-report", "--sample-period", "1ms"
SYSTEM = "/usr/bin/python3"


def has_symbols(ctx, python):
    done = ctx.run("readelf", "--wide", "--sections", python)
    assert done.status == 0, done
    return ".symtab" in done.out


def largest(ctx, python, kind, *options, env=None):
    """Largest cause of the launcher that is code, with its share of all that is."""
    truth = ctx.path(f"{kind}.json")
    done = ctx.record(python, PYTHON_STALL, ctx.build / "sim" / "lib", kind, "0.8", truth, options=OPTIONS, env=env)
    assert done.status == 0, done
    with open(truth, encoding="utf-8") as file:
        return json.load(file), code_of(ctx, *options)


def code_of(ctx, *options):
    gpu, = ctx.report("session.whyidle", *options)["gpus"]
    causes = [c for c in gpu["causes"] if c["role"] == "launcher" and c["code"].startswith("host.") and c["code"] != "host.gil"]
    total = sum(c["ns"] for c in causes)
    assert causes and total, gpu["causes"]
    return {cause_key(c): c["ns"] / total for c in causes}


def check_collects(shares, what):
    assert shares.get("host.gc@launcher", 0) > 0.8, f"{what}: {shares}"


def check_computes(shares, what):
    assert shares.get("host.gc@launcher", 0) < 0.02, f"{what}: {shares}"


@limit(60)
@needs("bpf")
def test_collection_in_an_interpreter_without_symbols(ctx):
    if not os.path.exists(SYSTEM) or has_symbols(ctx, os.path.realpath(SYSTEM)):
        raise Skip("the system's interpreter has symbols, or there is none")
    _, collects = largest(ctx, SYSTEM, "collect")
    check_collects(collects, "collect")
    for kind in "compute", "beside":
        _, computes = largest(ctx, SYSTEM, kind)
        check_computes(computes, kind)
    return f"{collects['host.gc@launcher']:.0%}"


@limit(100)
@needs("bpf", "namespace")
def test_collection_in_packaged_versions(ctx):
    shown = []
    for version, python in packaged_pythons(ctx).items():
        _, collects = largest(ctx, python, "collect")
        check_collects(collects, version)
        _, computes = largest(ctx, python, "beside")
        check_computes(computes, version)
        shown.append(f"{version} {collects['host.gc@launcher']:.0%}")
    return ", ".join(shown)


def without_symbols(ctx, version, python):
    """A copy of an interpreter without its symbols, and the variables that it needs to find its library."""
    copy = ctx.path(f"python{version}")
    done = ctx.run("strip", "-o", copy, os.path.realpath(python))
    assert done.status == 0, done
    return copy, {"PYTHONHOME": str(pathlib.Path(os.path.realpath(python)).parents[1])}


@limit(100)
@needs("bpf")
def test_collection_in_other_versions(ctx):
    """Stripped; and with the symbols that are given afterwards, the same is said."""
    # 3.10 keeps these things where 3.9 does; the system's is looked at above.
    pythons = {v: p for v, p in other_pythons(ctx).items() if has_symbols(ctx, os.path.realpath(p)) and v not in ("3.10", "3.11")}
    if not pythons:
        raise Skip("there is no other CPython than the system's")
    shown = []
    for version, python in pythons.items():
        copy, env = without_symbols(ctx, version, python)
        truth, collects = largest(ctx, copy, "collect", env=env)
        assert "%d.%d" % tuple(truth["version"]) == version, truth
        check_collects(collects, version)
        again = code_of(ctx, "--symbols", os.path.dirname(os.path.realpath(python)))
        assert abs(again["host.gc@launcher"] - collects["host.gc@launcher"]) < 0.1, f"{version}: {collects}, later {again}"
        shown.append(f"{version} {collects['host.gc@launcher']:.0%}")
    newest = max(pythons, key=version_key)
    _, computes = largest(ctx, without_symbols(ctx, newest, pythons[newest])[0], "beside",
                          env={"PYTHONHOME": str(pathlib.Path(os.path.realpath(pythons[newest])).parents[1])})
    check_computes(computes, newest)
    return ", ".join(shown)
