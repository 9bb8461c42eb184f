"""What very many cells said is kept by spans: found by all that it rests on, and what is written stays the same."""

from __future__ import annotations

import hashlib
import pickle
import shutil
from pathlib import Path

import pytest

from bench import stored
from bench.errors import UserError
from bench.records.cells import has_table, whole_cells
from bench.report.tables.files import open_folder
from bench.report.tables.streamed_files import write_streamed
from bench.stored import NO_CACHE, judged, judging, many_stored, spans, stamps, streamed
from bench.stored.spans import MOST, spans_of
from tests.scale.copies import make

CELLS = 24


def names(count: int, of: str = "m") -> list[Path]:
    return [Path(of) / hashlib.sha256(str(number).encode()).hexdigest()[:12] for number in range(count)]


def test_spans_are_the_folders_in_their_order_and_each_of_one_machine() -> None:
    folders = sorted(names(900)) + sorted(names(500, "n"))
    found = spans_of(folders)
    assert [one for span in found for one in span] == folders
    assert all(len({one.parent for one in span}) == 1 and len(span) <= MOST for span in found)
    assert 8 < len(found) < 64 and spans_of([]) == []


def test_a_cell_that_comes_new_is_in_one_span_and_changes_no_other() -> None:
    folders = sorted(names(2000))
    for new in names(2040)[2000:]:
        before, after = ({tuple(span) for span in spans_of(those)} for those in (folders, sorted([*folders, new])))
        assert len(after - before) <= 2 and all(new in span or len(span) == MOST for span in after - before)


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies in spans of some five, none too fresh to be known by its times, and a cache of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(stored, "MANY", 3)
    monkeypatch.setattr(stored, "FEWEST_KEPT", 0)
    monkeypatch.setattr(spans, "USUAL", 5)
    for module in (spans, stamps):
        monkeypatch.setattr(module, "SETTLED_NS", -(10**12))
    make(tmp_path / "results", CELLS)
    shutil.rmtree(tmp_path / "results" / ".files")
    return tmp_path / "results"


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Cells whose kept share was asked for, but for profiles, and `rows` for each time that some were read again."""
    found: list[str] = []
    own, read = judging.Judging.found, streamed._Reading._read

    def asked(self: judging.Judging, folder: Path):
        if not has_table(folder, "steps"):
            found.append(folder.name)
        return own(self, folder)

    monkeypatch.setattr(judging.Judging, "found", asked)
    monkeypatch.setattr(streamed._Reading, "_read", lambda *asked: found.append("rows") or read(*asked))
    return found


def written(results: Path, out: Path) -> dict[str, bytes]:
    """The CSV files, without page and figures."""
    found = judged(results, "all", shown=False)
    assert found.many is not None
    open_folder(out)
    return {path.name: path.read_bytes() for path in write_streamed(found.many, found.findings, 1, found.claims, out)}


def anew(results: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The same with nothing kept."""
    with monkeypatch.context() as patched:
        patched.setenv(NO_CACHE, "1")
        return written(results, out)


def test_what_nothing_touched_is_neither_asked_nor_read_again(copies: Path, tmp_path: Path, works: list[str],
                                                              monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    first = written(copies, tmp_path / "reports")
    assert works
    works.clear()
    assert written(copies, tmp_path / "reports") == first and works == []
    assert anew(copies, tmp_path / "anew", monkeypatch) == first


def test_a_cell_that_is_gone_changes_its_span_and_what_all_say(copies: Path, tmp_path: Path, works: list[str],
                                                               monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """A/A of the others is in every interval of a speed-up: those of all are other ones."""
    first = written(copies, tmp_path / "reports")
    gone = sorted((copies / "amd-epyc-2c").iterdir())[-5]
    shutil.move(gone, tmp_path / "aside")
    works.clear()
    second = written(copies, tmp_path / "reports")
    assert second == anew(copies, tmp_path / "anew", monkeypatch) != first
    files = kept(tmp_path)
    shutil.move(tmp_path / "aside", gone)
    assert written(copies, tmp_path / "reports") == first and kept(tmp_path) == files, "it took the other's place"


def kept(folder: Path) -> set[str]:
    return {path.name for part in ("spans", "texts") for path in (folder / "cache").rglob(f"{part}/*/*")}


@pytest.mark.parametrize("part", ["spans", "texts"])
@pytest.mark.parametrize("harm", ["cut", "bit", "moved"])
def test_what_was_kept_and_is_damaged_is_none(copies: Path, tmp_path: Path, works: list[str], part: str,
                                              harm: str) -> None:  # fmt: skip
    first = written(copies, tmp_path / "reports")
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and part in path.parts]
    content = [path.read_bytes() for path in files]
    for place, path in enumerate(files):
        bit = bytearray(content[place])
        bit[len(bit) // 2] ^= 1
        path.write_bytes({"cut": content[place][:-9], "bit": bytes(bit),
                          "moved": content[place - 1]}[harm])  # fmt: skip
    works.clear()
    assert files and written(copies, tmp_path / "reports") == first and works


def test_what_holds_anything_but_rows_runs_nothing(copies: Path, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    class Evil:
        def __reduce__(self):
            return Path.mkdir, (tmp_path / "evil",)

    planted = pickle.dumps([Evil()] * CELLS)
    monkeypatch.setattr(judging, "span", lambda shares, _: spans.Span(streamed.zlib.compress(planted), []))
    for _ in range(2):
        with pytest.raises(UserError, match="not as it was written; remove that folder"):
            written(copies, tmp_path / "reports")
    assert not (tmp_path / "evil").exists()


def test_other_sheets_hold_other_rows(copies: Path) -> None:
    """What is held of a cell is what the sheets ask: kept for one sheet, it is none for another."""
    for _ in range(2):
        none = many_stored(whole_cells(copies))
        assert none is not None and none.light.speedup == [] and none.light.cells
        assert judged(copies, "all", shown=False).many.light.speedup  # type: ignore[union-attr]
