"""`python -m tests.fuzz [--seconds N] [--from NUMBER] [TARGET ..]`: damaged inputs for every reader, until time is up.

Each target is a process of its own with a limit on its memory. A line for each target: inputs, faults by place, the
slowest input, the highest memory. Exit code 1 where there was a fault; `--only TARGET --at NUMBER` has one again.
With `--atheris TARGET`, where the package is installed, the inputs are guided by what they reach.
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

from bench.errors import innermost_frame
from tests.fuzz.targets import TARGETS, described, once

SLOW_S = 5
MOST_BYTES = 1 << 30


class Slow(Exception):
    """An input took too long."""


def _alarm(*_: object) -> None:
    raise Slow


def run(name: str, seconds: float, first: int) -> dict[str, object]:
    """Inputs of one target from number `first` on, for so many seconds."""
    signal.signal(signal.SIGALRM, _alarm)
    faults: Counter[str] = Counter()
    shown: dict[str, int] = {}
    slowest, number, until = 0.0, first, time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        while time.monotonic() < until:
            began = time.monotonic()
            signal.alarm(SLOW_S)
            try:
                once(name, number, Path(folder) / "one")
            except (Exception, RecursionError) as error:
                place = f"{type(error).__name__} ({innermost_frame(error)})"
                faults[place] += 1
                shown.setdefault(place, number)
            finally:
                signal.alarm(0)
            slowest = max(slowest, time.monotonic() - began)
            number += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"inputs": number - first, "faults": dict(faults), "first": shown, "slowest_s": round(slowest, 2),
            "peak": peak}  # fmt: skip


def again(name: str, number: int) -> int:
    """One input with its traceback."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(described(once(name, number, Path(folder) / "one")))
        except Exception:
            traceback.print_exc()
            return 1
    return 0


def guided(name: str) -> int:
    """Inputs whose numbers atheris draws, guided by the lines that they reach."""
    import atheris

    with tempfile.TemporaryDirectory() as folder:

        def one(data: bytes) -> None:
            once(name, int.from_bytes(data[:8], "little"), Path(folder) / "one")

        atheris.instrument_all()
        atheris.Setup([sys.argv[0]], one)
        atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--only", choices=TARGETS)
    parser.add_argument("--at", type=int)
    parser.add_argument("--atheris", choices=TARGETS)
    options = parser.parse_args()
    faulthandler.enable()
    if options.atheris:
        return guided(options.atheris)
    if options.only and options.at is not None:
        return again(options.only, options.at)
    if options.only:
        resource.setrlimit(resource.RLIMIT_AS, (6 * MOST_BYTES, 6 * MOST_BYTES))
        print(json.dumps(run(options.only, options.seconds, options.first)))
        return 0
    names, total, bad = options.targets or [*TARGETS], 0, False
    for name in names:
        command = [sys.executable, "-m", "tests.fuzz", "--only", name, "--from", str(options.first), "--seconds",
                   str(options.seconds / len(names))]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{name}: ended with {done.returncode}: {done.stderr[-2000:]}", flush=True)
            bad = True
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        total += found["inputs"]
        bad |= bool(found["faults"]) or found["peak"] > MOST_BYTES
        faults = f"{sum(found['faults'].values())} faults in {len(found['faults'])} places"
        print(f"{name}: {found['inputs']} inputs, {faults}, slowest {found['slowest_s']} s, peak "
              f"{found['peak'] >> 20} MB", flush=True)  # fmt: skip
        for place, count in sorted(found["faults"].items(), key=lambda item: -item[1]):
            print(f"  {count} x {place}: python -m tests.fuzz --only {name} --at {found['first'][place]}", flush=True)
    print(f"{total} inputs")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
