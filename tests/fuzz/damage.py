"""`python -m tests.fuzz.damage`: every file of some stored cells, damaged in every usual way, and a report over it.

The last line counts the damaged files, what became of their cells, the errors that nobody caught, and the sound cells
that lost their findings. Exit code 1 where there was one of the latter two.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.judge.findings import Findings
from bench.records.cells import cell_folders
from bench.stored import judge_stored
from tests.fuzz.targets import REFERENCE

Way = Callable[[Path, Path], None]
"""Of the file, and of the same file of another cell."""


def content(change: Callable[[bytes], bytes]) -> Way:
    return lambda path, _: path.write_bytes(change(path.read_bytes())) and None


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :] if data else b"x"


def instead(make: Callable[[Path], object]) -> Way:
    def change(path: Path, _: Path) -> None:
        path.unlink()
        make(path)

    return change


def rows(change: Callable[[list[bytes]], list[bytes]]) -> Way:
    return content(lambda data: gzip.compress(b"".join(change(gzip.decompress(data).splitlines(keepends=True))), 1))


def anothers(path: Path, other: Path) -> None:
    if other.exists():
        shutil.copy(other, path)
    else:
        path.unlink()


ANY: dict[str, Way] = {
    "empty": content(lambda data: b""), "half": content(lambda data: data[: len(data) // 2]),
    "end cut": content(lambda data: data[:-9]), "begin cut": content(lambda data: data[9:]),
    "byte flipped": content(flipped), "hole": content(lambda data: data[: len(data) // 3] + bytes(4096)),
    "noise": content(lambda data: os.urandom(len(data))), "twice": content(lambda data: data * 2),
    "gone": instead(lambda path: None), "folder": instead(Path.mkdir), "pipe": instead(os.mkfifo),
    "to nowhere": instead(lambda path: path.symlink_to("nowhere")), "loop": instead(lambda path: path.symlink_to(path)),
    "another cell's": anothers, "huge": lambda path, _: os.truncate(path, 1 << 40),
}  # fmt: skip
VALUES: dict[str, Way] = {
    name: content(lambda data, text=text: text.encode())  # type: ignore[misc]
    for name, text in {"list": "[]", "nothing": "null", "text": '"x"', "deep": "[" * 9000, "no keys": "{}",
                       "number": "1e999"}.items()
}  # fmt: skip
TABLE: dict[str, Way] = {
    "unpacked": content(gzip.decompress), "no rows": rows(lambda lines: lines[:1]),
    "half the rows": rows(lambda lines: lines[: 1 + len(lines) // 2]), "no header": rows(lambda lines: lines[1:]),
    "rows twice": rows(lambda lines: lines + lines[1:]), "nan": rows(lambda lines: [
        lines[0], *(b",".join([b"nan"] * (line.count(b",") + 1)) + b"\n" for line in lines[1:])]),
    "a column less": rows(lambda lines: [line.rpartition(b",")[0] + b"\n" for line in lines]),
    "2^63": rows(lambda lines: [lines[0], *(line.replace(b"1", b"9223372036854775808") for line in lines[1:])]),
}  # fmt: skip


def ways(path: Path) -> dict[str, Way]:
    return ANY | (TABLE if path.suffix == ".gz" else VALUES)


def sources() -> list[Path]:
    """Two contrasts and a profile of the reference, small ones."""
    folders = sorted(cell_folders(REFERENCE), key=lambda one: sum(path.stat().st_size for path in one.iterdir()))
    kinds = [[one for one in folders if f"\nkind: {kind}\n" in (one / "cell.yaml").read_text()]
             for kind in ("contrast", "profile")]  # fmt: skip
    return [*kinds[0][:2], *kinds[1][:1]]


def cases(box: Path) -> Iterator[tuple[Path, str, Way]]:
    for folder in sorted(box.iterdir()):
        for path in sorted(folder.iterdir()):
            for name, way in ways(path).items():
                if "engine" not in path.name:
                    yield path, name, way


def without(findings: Findings, cell: str) -> list[str]:
    """Rows of the table of cells but for one's."""
    return [f"{row.cell} {row.state} {row.void}" for row in findings.cells if row.cell != cell]


def main() -> int:
    became: Counter[str] = Counter()
    uncaught = lost = 0
    with tempfile.TemporaryDirectory() as place:
        box = Path(place) / "results" / "box"
        for number, source in enumerate(sources()):
            shutil.copytree(source, box / f"cell{number}")
        folders = sorted(box.iterdir())
        kept = Path(place) / "kept"
        sound = {folder: without(judge_stored([one for one in folders if one != folder], 1), folder.name)
                 for folder in folders}  # fmt: skip
        for path, name, way in list(cases(box)):
            shutil.copytree(path.parent, kept)
            other = folders[(folders.index(path.parent) + 1) % len(folders)] / path.name
            way(path, other)
            try:
                found = judge_stored(cell_folders(box.parent), 1)
                (row,) = (row for row in found.cells if row.cell == path.parent.name)
                became[row.state if row.state == "damaged" else "void" if row.void else "judged"] += 1
                lost += without(found, path.parent.name) != sound[path.parent]
            except Exception:
                uncaught += 1
                print(f"{path.parent.name}/{path.name}, {name}: {traceback.format_exc()}", flush=True)
            shutil.rmtree(path.parent)
            kept.rename(path.parent)
    print(f"{became.total() + uncaught} damaged files: {json.dumps(became)}, {uncaught} errors that nobody caught, "
          f"{lost} reports in which a sound cell was judged otherwise", flush=True)  # fmt: skip
    return int(bool(uncaught or lost))


if __name__ == "__main__":
    sys.exit(main())
