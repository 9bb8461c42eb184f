"""`python -m tests.fuzz [--seconds N | --inputs N] [--from NUMBER] [TARGET ..]`: damaged inputs for every reader.

Each target is a process of its own. A line for each: inputs, faults by place, the slowest input in seconds of
processor, the highest memory; at the end the sum of all. `--inputs` shares a number of inputs out as `SHARES` says.
Exit code 1 where there was a fault. `--only TARGET --at NUMBER` has one input again with its traceback, and
`--guided TARGET` draws the inputs by what they reach (`tests.fuzz.guided`).
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from bench.errors import innermost_frame
from tests.fuzz.targets import TARGETS, described, once

SLOW_S = 5
"""Of the processor's time: beside other work the clock on the wall says nothing about an input."""
STUCK_S = 600
"""On the wall: something is waited for, and it is not the processor."""
MOST_BYTES = 1 << 30
PIECE_S = 300.0
SHARES = {"gguf": 6, "ssq": 6, "source": 72, "audit": 2, "sheet": 2, "profile": 6, "overrides": 2, "cells": 2,
          "kernels": 2}  # fmt: skip
"""Per cent of the inputs: a reader that takes a hundred times as long has fewer, and none has under a fiftieth."""


class Slow(BaseException):
    """An input took too long. No `Exception`: what catches those, to tell of a damaged cell, would hide it."""


def _alarm(*_: object) -> None:
    raise Slow


def attempt(name: str, number: int, folder: Path) -> str:
    """One input; returns where the fault is, or nothing."""
    signal.setitimer(signal.ITIMER_PROF, SLOW_S)
    signal.setitimer(signal.ITIMER_REAL, STUCK_S)
    try:
        once(name, number, folder)
    except (Exception, Slow) as error:
        return f"{type(error).__name__} ({innermost_frame(error)})"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return ""


def run(name: str, seconds: float, most: int, first: int) -> dict[str, Any]:
    """Inputs of one target from number `first` on, for so many seconds or until there were so many."""
    signal.signal(signal.SIGPROF, _alarm)
    signal.signal(signal.SIGALRM, _alarm)
    faults: Counter[str] = Counter()
    shown: dict[str, int] = {}
    slowest, number, until = 0.0, first, time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        while time.monotonic() < until and number < first + most:
            began = time.process_time()
            if place := attempt(name, number, Path(folder) / "one"):
                faults[place] += 1
                shown.setdefault(place, number)
            slowest = max(slowest, time.process_time() - began)
            number += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"inputs": number - first, "faults": dict(faults), "first": shown, "slowest_s": slowest, "peak": peak}


def again(name: str, number: int) -> int:
    """One input with its traceback."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(described(once(name, number, Path(folder) / "one")))
        except Exception:
            traceback.print_exc()
            return 1
    return 0


def piece(name: str, seconds: float, most: int, first: int) -> dict[str, Any]:
    """The same in a process of its own, which may end in any way."""
    command = [sys.executable, "-m", "tests.fuzz", "--only", name, "--from", str(first), "--seconds", str(seconds),
               "--inputs", str(most)]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 2 * STUCK_S)
        if not done.returncode:
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return found
        why = f"ended with {done.returncode}: {done.stderr[-2000:]}"
    except subprocess.TimeoutExpired:
        why = f"stood still from {first} on"
    return {"inputs": 0, "faults": {why: 1}, "first": {why: first}, "slowest_s": 0.0, "peak": 0}


def target(name: str, seconds: float, most: int, first: int) -> dict[str, Any]:
    """All pieces of one target, added up and printed. One that ends badly is the last."""
    total: dict[str, Any] = {"inputs": 0, "faults": Counter(), "first": {}, "slowest_s": 0.0, "peak": 0}
    until = time.monotonic() + seconds
    while total["inputs"] < most and (left := until - time.monotonic()) > 0:
        found = piece(name, min(PIECE_S, left), most - total["inputs"], first + total["inputs"])
        total["inputs"] += found["inputs"]
        total["faults"].update(found["faults"])
        total["first"] = found["first"] | total["first"]
        total |= {key: max(total[key], found[key]) for key in ("slowest_s", "peak")}
        if not found["inputs"]:
            break
    print(f"{name}: {told(total)}", flush=True)
    for place, count in total["faults"].most_common():
        print(f"  {count} x {place}: python -m tests.fuzz --only {name} --at {total['first'][place]}", flush=True)
    return total


def told(total: dict[str, Any]) -> str:
    faults = f"{sum(total['faults'].values())} faults in {len(total['faults'])} places"
    return f"{total['inputs']} inputs, {faults}, slowest {total['slowest_s']:.2f} s, peak {total['peak'] >> 20} MB"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--only", choices=TARGETS)
    parser.add_argument("--at", type=int)
    parser.add_argument("--guided", choices=TARGETS)
    options = parser.parse_args()
    faulthandler.enable()
    if options.guided:
        # Its readers are imported in another way.
        return subprocess.call([sys.executable, "-m", "tests.fuzz.guided", options.guided, str(options.seconds or 60)])
    if options.only and options.at is not None:
        return again(options.only, options.at)
    if options.only:
        resource.setrlimit(resource.RLIMIT_AS, (6 * MOST_BYTES, 6 * MOST_BYTES))
        print(json.dumps(run(options.only, options.seconds or 60, options.inputs or sys.maxsize, options.first)))
        return 0
    names = options.targets or [*TARGETS]
    seconds = (options.seconds or (sys.maxsize if options.inputs else 600)) / len(names)
    shares = sum(SHARES[name] for name in names)
    every = [target(name, seconds, options.inputs * SHARES[name] // shares if options.inputs else sys.maxsize,
                    options.first) for name in names]  # fmt: skip
    faults = sum((one["faults"] for one in every), Counter())
    print("all: " + told({"inputs": sum(one["inputs"] for one in every), "faults": faults,
                          "slowest_s": max(one["slowest_s"] for one in every),
                          "peak": max(one["peak"] for one in every)}))  # fmt: skip
    return int(bool(faults) or max(one["peak"] for one in every) > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
