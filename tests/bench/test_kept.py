"""What is kept of judged cells: found again only by all that it rests on, and never an old verdict."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench import stored
from bench.judge import judge
from bench.records.cells import load_cells, whole_cells
from bench.stored import judge_stored, judging, kept, stamps
from bench.stored.kept import Kept, Share, key_of, packed, unpacked
from tests.faults.stored import folder_of

UNSEALED = ("16476fce18bc", "9528e9b90995", "35b43824814e", "6906f25dc103")
"""A loop that repeats, a lookup, the profile that prices them, and one at a temperature: of schemas without
hashes, so that an edit of them is no damage and has to be judged."""
SEALED = "089d8099b842"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Real cells, a cache of their own, and every number of cells enough to keep their shares."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(stored, "FEWEST_KEPT", 0)
    for name in (*UNSEALED, SEALED):
        shutil.copytree(folder_of(name), tmp_path / "results" / "amd-epyc-2c" / name)
    return tmp_path / "results"


def shown(root: Path, processes: int = 1) -> str:
    return repr(judge_stored(whole_cells(root), processes))


def fresh(root: Path) -> str:
    """What is judged with nothing kept."""
    return repr(judge(load_cells(root)))


@pytest.fixture
def judgings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the cells that were really judged."""
    found: list[str] = []
    own = judging.read_cell
    monkeypatch.setattr(judging, "read_cell", lambda folder: found.append(folder.name) or own(folder))
    return found


def shares(root: Path) -> list[Path]:
    return [path for path in (root.parent / "cache").rglob("*") if path.is_file() and "stamps" not in path.parts]


@pytest.mark.parametrize("processes", [1, 2])
def test_the_second_time_nothing_is_judged_and_everything_is_the_same(root, judgings, processes):
    first = shown(root, processes)
    assert first == fresh(root) and len(shares(root)) == 5
    judgings.clear()
    assert shown(root) == first and judgings == []
    (root / "amd-epyc-2c" / "extra").mkdir()
    shutil.copytree(folder_of("63212163b56e"), root / "amd-epyc-2c" / "63212163b56e")
    assert shown(root) == fresh(root) and judgings == ["63212163b56e"]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the cells whose bytes were read to know them; no file here is too fresh to have a stamp."""
    found: list[str] = []
    own = stamps.file_contents
    monkeypatch.setattr(stamps, "SETTLED_NS", -(10**12))
    monkeypatch.setattr(stamps, "file_contents", lambda folder: found.append(folder.name) or own(folder))
    return found


def test_what_nothing_touched_is_not_read_again(root, judgings, reads):
    first = shown(root)
    reads.clear(), judgings.clear()
    assert shown(root) == first and reads == judgings == []
    path = root / "amd-epyc-2c" / SEALED / "status.json"
    content, found = path.read_bytes(), path.stat()
    for changed in (content.replace(b"done", b"d0ne", 1), content):
        path.write_bytes(changed)
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        assert shown(root) == fresh(root) and set(reads) == {SEALED}
        reads.clear()
    assert shown(root) == first and reads == []
    shutil.copytree(root, root.parent / "other")
    assert repr(judge_stored(whole_cells(root.parent / "other"))) == first and len(set(reads)) == 5


def test_a_cell_that_is_judged_is_read_once_to_be_known(root, reads):
    shown(root)
    assert sorted(reads) == sorted({*reads})


def test_a_cell_that_was_just_written_is_read_again(root, reads, monkeypatch):
    monkeypatch.setattr(stamps, "SETTLED_NS", 10**12)
    first = shown(root)
    reads.clear()
    assert shown(root) == first and len(set(reads)) == 5


@pytest.mark.parametrize("edit", [lambda text: text.replace(" ", " 0", 1), lambda text: text[:80], lambda _: "\0" * 9])
def test_a_stamp_that_was_edited_counts_for_nothing(root, judgings, reads, edit):
    first = shown(root)
    kept_stamps = [path for path in (root.parent / "cache").rglob("*") if path.is_file() and "stamps" in path.parts]
    assert len(kept_stamps) == 5
    for path in kept_stamps:
        path.write_text(edit(path.read_text()))
    reads.clear()
    assert shown(root) == first and len(set(reads)) == 5


def edits() -> list[tuple[str, str]]:
    files = ("cell.yaml", "env.json", "facts.json", "status.json", "runs.csv.gz", "rounds.csv.gz", "ledger.csv.gz")
    return [(cell, file) for cell in (UNSEALED[0], UNSEALED[2], SEALED) for file in files
            if (folder_of(cell) / file).exists()]  # fmt: skip


@pytest.mark.parametrize(("cell", "file"), edits())
def test_an_edit_of_any_file_is_judged_though_its_size_and_time_stay(root, judgings, cell, file):
    before = shown(root)
    path = root / "amd-epyc-2c" / cell / file
    found, content = path.stat(), bytearray(path.read_bytes())
    place = next(place for place in range(len(content) // 2, len(content)) if chr(content[place]).isdigit()
                 or path.suffix == ".gz")  # fmt: skip
    content[place] = ord("7") if content[place] != ord("7") else ord("3")
    path.write_bytes(content)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    judgings.clear()
    after = shown(root)
    assert cell in judgings and after == fresh(root)
    path.write_bytes((folder_of(cell) / file).read_bytes())
    assert shown(root) == before == fresh(root)


def test_another_curve_another_price(root, judgings):
    """A profile that is removed, changed or added changes what it priced, whose own files stay as they are."""
    before = shown(root)
    profile = root / "amd-epyc-2c" / UNSEALED[2]
    shutil.move(profile, root.parent / "aside")
    judgings.clear()
    without = shown(root)
    assert without == fresh(root) != before
    assert {UNSEALED[0], UNSEALED[1]} <= {*judgings}
    shutil.move(root.parent / "aside", profile)
    facts = json.loads((profile / "status.json").read_text())
    (profile / "status.json").write_text(json.dumps({**facts, "state": "failed", "reason": "planted"}))
    assert shown(root) == fresh(root) != before
    (profile / "status.json").write_text(json.dumps(facts))
    assert shown(root) == fresh(root)


def test_a_cell_under_another_name_or_machine_is_another_cell(root, judgings):
    shown(root)
    shutil.copytree(root / "amd-epyc-2c", root / "box")
    shutil.copytree(root / "box" / UNSEALED[0], root / "box" / "0123456789ab")
    judgings.clear()
    assert shown(root) == fresh(root)
    assert len(judgings) == 6


def test_another_version_of_the_code_finds_nothing(root, judgings, monkeypatch):
    shown(root)
    code = root.parent / "code"
    (code / "bench" / "judge").mkdir(parents=True)
    (code / "bench" / "judge" / "one.py").write_text("A = 1\n")
    monkeypatch.setattr(kept, "ROOT", code)
    versions = set()
    for text in ("A = 1\n", "A = 2\n", "A = 3\n"):
        (code / "bench" / "judge" / "one.py").write_text(text)
        kept.version.cache_clear()
        versions.add(kept.version())
        judgings.clear()
        assert shown(root) == fresh(root) and len(judgings) == 5
        judgings.clear()
        assert shown(root) and judgings == []
    monkeypatch.undo()
    kept.version.cache_clear()
    assert len(versions) == 3 and kept.version() not in versions
    assert len(list((root.parent / "cache" / "pti-bench" / "judged").iterdir())) == kept.MOST_VERSIONS


def test_the_version_is_of_all_code_that_judges():
    known = [kept.ROOT / folder for folder in kept.SOURCES]
    for module in ("bench/judge/measure/intervals.py", "bench/records/table_files.py", "pti_loop/ledger.py"):
        assert any(folder in (kept.ROOT / module).parents for folder in known)


@pytest.mark.parametrize("harm", ["cut", "empty", "zeros", "moved", "bit"])
def test_a_damaged_share_is_none(root, judgings, harm):
    before, files = shown(root), shares(root)
    content = [path.read_bytes() for path in files]
    for place, path in enumerate(files):
        bit = bytearray(content[place])
        bit[len(bit) // 2] ^= 1
        path.write_bytes({"cut": content[place][:-9], "empty": b"", "zeros": bytes(900), "bit": bytes(bit),
                          "moved": content[place - 1]}[harm])  # fmt: skip
    judgings.clear()
    assert shown(root) == before and len(judgings) == 5
    judgings.clear()
    assert shown(root) == before and judgings == [], "they were kept again"


def test_what_holds_anything_but_rows_runs_nothing(root, monkeypatch):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(root / "evil"),)

    class Named:
        def __reduce__(self):
            from bench.judge.tables import named

            return named, ("os:getcwd",)

    for planted in (Evil(), Named(), Share(Evil()), {"a": 1}, None):  # type: ignore[arg-type]
        assert unpacked(pickle.dumps(planted)) is None
    before = shown(root)
    monkeypatch.setattr(judging, "packed", lambda share: pickle.dumps(Evil()))
    shutil.rmtree(root.parent / "cache")
    assert shown(root) == before
    assert shares(root)
    assert shown(root) == before and shown(root, 2) == before, "judged in its place"
    assert not (root / "evil").exists()


def test_two_reports_at_once_say_the_same(root):
    expected = fresh(root)
    with ThreadPoolExecutor(4) as pool:
        assert {*pool.map(lambda _: shown(root), range(8))} == {expected}
    assert len(shares(root)) == 5 and shown(root) == expected


@pytest.mark.parametrize("settled", [stamps.SETTLED_NS, -(10**12)])
def test_a_cell_that_is_written_while_it_is_judged_is_not_kept(root, monkeypatch, settled):
    """Whether its files were too fresh to be known by their times, or were known by them before."""
    monkeypatch.setattr(stamps, "SETTLED_NS", settled)
    target = root / "amd-epyc-2c" / UNSEALED[2]
    own = judging.read_cell

    def slow(folder: Path):
        found = own(folder)
        if folder == target:
            (folder / "facts.json").write_text((folder / "facts.json").read_text() + " ")
        return found

    monkeypatch.setattr(judging, "read_cell", slow)
    shown(root)
    monkeypatch.undo()
    assert not [path for path in shares(root) if path.name == key_of(target)[2:]]


def test_nothing_is_kept_of_a_damaged_cell_or_without_a_place(root, judgings, monkeypatch):
    (root / "amd-epyc-2c" / SEALED / "facts.json").write_text("{}")
    assert shown(root) == fresh(root) and len(shares(root)) == 4
    place = root.parent / "no_folder"
    place.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    judgings.clear()
    assert shown(root) == fresh(root) and len(judgings) == 5
    monkeypatch.setenv("XDG_CACHE_HOME", str(root.parent / "cache"))
    monkeypatch.setenv(stored.NO_CACHE, "1")
    judgings.clear()
    assert shown(root) == fresh(root) and len(judgings) == 5


def test_what_a_reader_can_look_at_is_kept_too_and_apart(root, judgings):
    without = shown(root)
    first = judge_stored(whole_cells(root), 1, traces=True)
    assert len(first.traces) == 5 and any(one.shown for one in first.traces)
    judgings.clear()
    again = judge_stored(whole_cells(root), 1, traces=True)
    assert judgings == [] and repr(again) == repr(first) and repr(again.traces) == repr(first.traces)
    assert shown(root) == without and judgings == []


def test_few_cells_are_judged_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert judge_stored([folder_of(name) for name in UNSEALED]).cells
    assert list(tmp_path.iterdir()) == []


def test_a_share_comes_back_as_it_was(root):
    folder = root / "amd-epyc-2c" / UNSEALED[2]
    key, share = judging.Judging(keeps=True).found(folder)
    assert isinstance(share, Share) and repr(unpacked(packed(share))) == repr(share)
    content = Kept().load(key)
    assert content is not None and repr(unpacked(content)) == repr(share)
    assert zlib.decompress(next(iter(shares(root))).read_bytes()).endswith(content)
