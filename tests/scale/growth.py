"""How time and memory of `report` grow with the number of stored cells.

    python -m tests.scale.growth FOLDER COUNT.. [--more N]

For each number: a folder of so many copies (`tests.scale.copies`, made once), the report with an empty cache, the same
again, and the same when N cells came new. Seconds, processor seconds and the largest memory of all its processes
together, pages that they share counted once; the size of what was written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from bench.host.pins import ROOT
from tests.scale.copies import make

LOOK_S = 0.5


def measure(results: Path, reports: Path, cache: Path) -> str:
    """One report as a line of a table."""
    env = os.environ | {"XDG_CACHE_HOME": str(cache)}
    before, began = getrusage(RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "bench", "report", f"results={results}", f"reports={reports}"]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL) as process:
        watch = Watch(process.pid)
        watch.start()
        code = process.wait()
    took, after = time.monotonic() - began, getrusage(RUSAGE_CHILDREN)
    watch.join()
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    written = sum(path.stat().st_size for path in reports.rglob("*") if path.is_file())
    return (f"{took:8.1f} s {processor:8.1f} s of CPU {watch.most / 1e6:8.0f} MB {written / 1e6:8.1f} MB written, "
            f"exit {code}")  # fmt: skip


class Watch(threading.Thread):
    """The largest memory of a process and all below it."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.most, self._pid = 0, pid

    def run(self) -> None:
        while Path(f"/proc/{self._pid}").exists():
            self.most = max(self.most, sum(map(_held, _below(self._pid))))
            time.sleep(LOOK_S)


def _below(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        try:
            found += [int(word) for task in Path(f"/proc/{one}/task").iterdir()
                      for word in (task / "children").read_text().split()]  # fmt: skip
        except OSError:
            continue
    return found


def _held(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Measure, and print a line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("counts", type=int, nargs="+")
    parser.add_argument("--more", type=int, default=100, help="cells that come new for the third report; 0: no third")
    parser.add_argument("--make", action="store_true", help="only make the folders")
    arguments = parser.parse_args()
    for count in arguments.counts:
        own = arguments.folder / str(count)
        if not (own / "results").is_dir():
            make(own / "results", count)
            shutil.rmtree(own / "results" / ".files")
        if arguments.make:
            continue
        shutil.rmtree(own / "cache", ignore_errors=True)
        for name in ("cold", "again"):
            print(f"{count:7} {name:6} {measure(own / 'results', own / 'reports', own / 'cache')}", flush=True)
        if arguments.more:
            make(own / "results", arguments.more, first=count)
            line = measure(own / "results", own / "reports", own / "cache")
            print(f"{count:7} +{arguments.more:<5} {line}", flush=True)
            shutil.rmtree(own / "results")


if __name__ == "__main__":
    main()
