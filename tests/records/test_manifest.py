"""A cell proves itself: whatever is cut, edited, swapped, added, taken away or copied, it is told with its reason."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.records import cells, partial_cells
from bench.records.cells import DamagedCell, StoredCell, read_cell, write_cell
from bench.records.identity import cell_id
from bench.records.manifest import FILES
from bench.records.rows import Emit, Step

ENV = {"engine": {"build": "b1"}, "machine": {"name": "box"}, "host": "ab", "device": "cpu", "harness_commit": "c1"}
DONE = {"state": "done", "reason": "", "seconds": 1.0}


def write(root: Path, streams: int = 2, machine: str = "box") -> Path:
    """A cell as a sweep writes one, with tables, whose folder is its id."""
    config = {"streams": streams, "machine": machine, "weights": "ab", "files": {}}
    folder = root / machine / cell_id(config, "b1")
    tables = {"ledger": [Emit(0, 0, n, 5, -1, "prefill", 10 * streams) for n in range(4)],
              "steps": [Step(1, 0, 0, "sequences", 5, 3)]}  # fmt: skip
    write_cell(folder, config=config, env=ENV, status=DONE, facts={"n": streams}, tables=tables, log="words")
    return folder


def reason(folder: Path) -> str:
    found = read_cell(folder)
    assert isinstance(found, DamagedCell), found
    assert str(folder.parent.parent) not in found.reason
    return found.reason


def test_a_whole_cell_proves_itself(tmp_path: Path) -> None:
    folder = write(tmp_path)
    found = read_cell(folder)
    assert isinstance(found, StoredCell) and found.note == ""
    made = found.status["manifest"]
    assert made["measured"] == made["cell"] == folder.name and made["machine"] == "box"
    assert (made["build"], made["host"], made["device"], made["harness_commit"]) == ("b1", "ab", "cpu", "c1")
    assert set(made["files"]) == {path.name for path in folder.iterdir()} - {"status.json"}
    assert made["files"]["ledger.csv.gz"]["rows"] == 4
    (folder / "notes.txt").write_text("mine")
    assert isinstance(read_cell(folder), StoredCell)


@pytest.mark.parametrize("name", [*FILES[:4], "ledger.csv.gz", "steps.csv.gz"])
@pytest.mark.parametrize("other", ["streams", "gone", "bit"])
def test_a_file_of_another_cell_or_none_or_a_changed_one(tmp_path: Path, name: str, other: str) -> None:
    folder, second = write(tmp_path), write(tmp_path, streams=3)
    if other == "gone":
        (folder / name).unlink()
    elif other == "streams":
        before = (folder / name).read_bytes()
        shutil.copy(second / name, folder / name)
        if before == (folder / name).read_bytes():
            assert isinstance(read_cell(folder), StoredCell)
            return
    else:
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(bytes(content))
    assert reason(folder).startswith(f"{name}: ")


def test_a_table_that_came_later(tmp_path: Path) -> None:
    folder = write(tmp_path)
    shutil.copy(folder / "steps.csv.gz", folder / "counts.csv.gz")
    assert reason(folder).startswith("counts.csv.gz: ")


def edit(change: Callable[[dict], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        status = json.loads((folder / "status.json").read_text())
        change(status)
        (folder / "status.json").write_text(json.dumps(status))

    return damage


@pytest.mark.parametrize(("damage", "why"), [
    (edit(lambda status: status.update(seconds=2.0)), "changed after"),
    (edit(lambda status: status.update(state="failed")), "changed after"),
    (edit(lambda status: status["manifest"].update(host="cd")), "changed after"),
    (edit(lambda status: status["manifest"]["files"].pop("env.json")), "changed after"),
    (edit(lambda status: status["manifest"].pop("seal")), "changed after"),
    (edit(lambda status: status["manifest"].update(files=[])), "lists no files"),
    (edit(lambda status: status.update(manifest=None)), "no manifest"),
    (edit(lambda status: status.pop("manifest")), "no manifest"),
    (edit(lambda status: status.update(manifest=[])), "manifest is a list"),
])  # fmt: skip
def test_status_json_itself(tmp_path: Path, damage: Callable[[Path], None], why: str) -> None:
    folder = write(tmp_path)
    damage(folder)
    assert reason(folder).startswith("status.json: ") and why in reason(folder)


def test_a_status_of_another_cell_is_told(tmp_path: Path) -> None:
    folder, other = write(tmp_path), write(tmp_path, streams=3)
    shutil.copy(other / "status.json", folder / "status.json")
    assert f"a copy of box/{other.name}" in reason(folder)


@pytest.mark.parametrize("place", ["box/0123456789ab", "other/{name}"])
def test_a_copy_is_no_further_evidence(tmp_path: Path, place: str) -> None:
    folder = write(tmp_path)
    copy = tmp_path / place.format(name=folder.name)
    shutil.copytree(folder, copy)
    assert f"a copy of box/{folder.name}" in reason(copy)
    assert isinstance(read_cell(folder), StoredCell)
    link = tmp_path / "linked"
    link.symlink_to(tmp_path / "box")
    assert "a copy of" in reason(link / folder.name)


def test_inputs_that_make_another_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner and a record that do not agree, with hashes that fit."""
    monkeypatch.setattr("bench.records.manifest.cell_id", lambda config, build: "0" * 12)
    folder = write(tmp_path)
    monkeypatch.undo()
    assert reason(folder).startswith("cell.yaml: it tells another measurement")


def test_status_json_is_the_last_file_and_everything_is_on_the_disk_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real_write, real_sync, real_rename = partial_cells.write_through, os.fsync, Path.rename

    def written(path: Path, content: bytes) -> None:
        real_write(path, content)
        order.append(path.name)

    def synced(descriptor: int) -> None:
        order.append("sync")
        real_sync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        order.append("rename")
        return real_rename(self, target)

    monkeypatch.setattr(partial_cells, "write_through", written)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    write(tmp_path)
    files = [name for name in order if name not in ("sync", "rename")]
    assert files[-1] == "status.json" and len(files) == 7
    assert order[: order.index("rename")].count("sync") == 8, "each file, and the folder"
    assert order[-2:] == ["rename", "sync"]


def test_an_older_cell_is_readable_and_says_that_nothing_proves_it(tmp_path: Path) -> None:
    folder = write(tmp_path)
    edit(lambda status: status.pop("manifest"))(folder)
    text = (folder / "cell.yaml").read_text()
    (folder / "cell.yaml").write_text(text.replace("schema: 3", "schema: 2"))
    found = read_cell(folder)
    assert isinstance(found, StoredCell) and "schema 2" in found.note


def test_a_cell_of_a_later_schema_is_never_written_over(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "cell.yaml").write_text("schema: 4\nsomething: else\n")
    found = read_cell(folder)
    assert isinstance(found, DamagedCell) and found.newer and "later release" in found.reason
    with pytest.raises(UserError, match="later release"):
        write_cell(folder, config={}, env={}, status=DONE)
    assert (folder / "cell.yaml").read_text().startswith("schema: 4")
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", [*FILES, "status.json"])
def test_a_pipe_in_the_place_of_a_file_is_never_waited_for(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert reason(folder) == f"{name}: it is a pipe or a device, a regular file is expected"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path)
    monkeypatch.setattr(cells, "MOST_TEXT_BYTES", 100)
    assert "at most 100 are read" in reason(folder)
