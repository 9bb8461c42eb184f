"""A cell on disk is whole or absent, and reads back as what was written."""

from __future__ import annotations

import gzip
import json
import math
import shutil

import numpy as np
import pytest

from bench.errors import UserError
from bench.host.pins import ROOT
from bench.records import partial_cells
from bench.records.cells import (
    DamagedCell,
    check_writable,
    has_table,
    load_cell,
    load_cells,
    read_cell,
    read_status,
    write_cell,
)
from bench.records.rows import Draw, Emit, Round, Step
from tests.faults.stored import EARLIER, folder_of

DONE = {"state": "done", "reason": "", "seconds": 1.0}


def write(folder, state="done", **tables):
    write_cell(folder, config={"streams": 2}, env={"machine": {"name": "box"}}, status=DONE | {"state": state},
               facts={"noise": {"logit_gap": 0.5}}, tables=tables, log="words")  # fmt: skip


def test_what_was_written_is_read_back(tmp_path):
    folder = tmp_path / "box" / "0123456789ab"
    write(folder, ledger=[Emit(0, 0, 0, 5, -1, "prefill", 10)],
          rounds=[Round(0, 0, "steady", 1, 0, 9, 1, 0, 10, 0, 0, 0)],
          draws=[Draw(0, 0, 1, 3, 7, 7, float("nan"))], steps=[Step(1, 0, 0, "sequences", 5, 3)])  # fmt: skip
    cell = load_cell(folder)
    assert (cell.machine, cell.cell) == ("box", "0123456789ab")
    assert cell.config["streams"] == 2
    assert cell.facts["noise"]["logit_gap"] == 0.5
    assert {name: column.tolist() for name, column in cell.ledger.items()} == {
        "run": [0], "stream": [0], "position": [0], "token": [5], "round": [-1], "source": ["prefill"], "t_ns": [10],
    }  # fmt: skip
    assert len(cell.rounds["round"]) == len(cell.steps["width"]) == 1
    assert np.isnan(cell.draws["collision"]).all()
    assert len(cell.runs["decode_window_ns"]) == 0


def test_the_same_rows_give_the_same_bytes(tmp_path):
    rows = [Emit(0, 0, i, 5, -1, "prefill", 10) for i in range(50)]
    for name in ("a", "b"):
        write(tmp_path / "box" / name, ledger=rows)
    assert (tmp_path / "box/a/ledger.csv.gz").read_bytes() == (tmp_path / "box/b/ledger.csv.gz").read_bytes()


def test_no_time_of_writing_is_in_a_packed_file(tmp_path):
    folder = tmp_path / "box" / "cell"
    write(folder, ledger=[Emit(0, 0, 0, 5, -1, "prefill", 10)])
    for name in ("ledger.csv.gz", "engine.log.gz"):
        assert (folder / name).read_bytes()[4:8] == bytes(4), f"{name}: bytes 4 to 7 of a gzip file are its time"


def test_others_may_read_a_cell(tmp_path):
    write(tmp_path / "box" / "cell")
    assert (tmp_path / "box" / "cell").stat().st_mode & 0o055 == 0o055


def test_a_table_without_rows_is_no_file(tmp_path):
    folder = tmp_path / "box" / "cell"
    write(folder, ledger=[Emit(0, 0, 0, 5, -1, "prefill", 10)], draws=[])
    assert has_table(folder, "ledger")
    assert not has_table(folder, "draws")


def test_a_fact_may_be_no_number(tmp_path):
    folder = tmp_path / "box" / "cell"
    write_cell(folder, config={}, env={}, status=DONE, facts={"clock": float("nan"), "rate": float("inf")})
    facts = load_cell(folder).facts
    assert math.isnan(facts["clock"]) and math.isinf(facts["rate"])


def test_a_damaged_status_is_no_cell(tmp_path):
    write(tmp_path / "box" / "cell")
    for text in ("{", "[]", "null", "{}", '{"state": "finished"}', '{"state": []}', "[" * 100_000):
        (tmp_path / "box" / "cell" / "status.json").write_text(text)
        assert read_status(tmp_path / "box" / "cell") is None


def test_cells_come_in_order_of_machine_and_id(tmp_path):
    for machine, cell in (("b", "2"), ("a", "3"), ("b", "1"), ("a", "1")):
        write(tmp_path / machine / cell)
    assert [(cell.machine, cell.cell) for cell in load_cells(tmp_path)] == [
        ("a", "1"), ("a", "3"), ("b", "1"), ("b", "2"),
    ]  # fmt: skip


def test_a_failure_while_writing_leaves_the_old_cell(tmp_path, monkeypatch):
    folder = tmp_path / "box" / "cell"
    write(folder)

    def full(*_):
        names = [path.name for path in folder.parent.iterdir()]
        assert any(name.startswith(".cell.") for name in names), "the same disk, or renaming would be copying"
        raise OSError("no space left on device")

    monkeypatch.setattr(partial_cells, "write_through", full)
    with pytest.raises(OSError, match="no space"):
        write(folder, state="failed", ledger=[Emit(0, 0, 0, 5, -1, "prefill", 10)])
    assert read_status(folder)["state"] == "done"
    assert [path.name for path in folder.parent.iterdir()] == ["cell"]


def test_a_second_writing_replaces_the_first_whole(tmp_path):
    folder = tmp_path / "box" / "cell"
    write(folder, ledger=[Emit(0, 0, 0, 5, -1, "prefill", 10)])
    write(folder, state="failed")
    assert read_status(folder)["state"] == "failed"
    assert not (folder / "ledger.csv.gz").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["cell"]


def test_an_unknown_state_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be 'finished'"):
        write(tmp_path / "box" / "cell", state="finished")


def test_own_results_come_before_the_reference(tmp_path):
    write(tmp_path / "reference" / "other" / "cell")
    assert [cell.machine for cell in load_cells(tmp_path)] == ["other"]
    write(tmp_path / "box" / "cell")
    assert [cell.machine for cell in load_cells(tmp_path)] == ["box"]
    assert [cell.machine for cell in load_cells(tmp_path / "reference")] == ["other"]


def test_half_written_folders_are_not_cells(tmp_path):
    write(tmp_path / "box" / ".cell.abc")
    (tmp_path / "box" / "halved").mkdir()
    assert load_cells(tmp_path) == []


DAMAGE = [
    ("cell.yaml", b"schema: 99", "of schema 99, this version reads 1 to 3: a later release"),
    ("cell.yaml", b"schema: true", "of schema True"),
    ("cell.yaml", b"schema: '1'", "of schema '1'"),
    ("cell.yaml", b"streams: 2", "of schema None"),
    ("cell.yaml", b"", "it holds nothing, a mapping is expected"),
    ("cell.yaml", b"a: [", "expected"),
    ("cell.yaml", b"schema: 1\nmodel: [x]", "model is a list, a mapping is expected"),
    ("cell.yaml", b"schema: 1\nmodel: {name: [x]}", "model.name is a list, a text or a number is expected"),
    ("cell.yaml", b"schema: 1\nstreams: two", "streams is 'two', a whole number is expected"),
    ("env.json", b"[]", "it holds a list, a mapping is expected"),
    ("env.json", b'{"machine": {"gpus": ["H200"]}}', "machine.gpus[0] is 'H200', a mapping is expected"),
    ("facts.json", b"{", "Expecting property name"),
    ("facts.json", b"\xff\xfe{}", "codec can't decode"),
    ("facts.json", b"[" * 100_000, "recursion"),
    ("facts.json", b'{"bandwidth": {"repeats": [true]}}', "bandwidth.repeats[0] is a truth value"),
    ("status.json", b"null", "it holds nothing"),
    ("status.json", b"{}", "state is 'None', it is one of done, failed, unsupported"),
    ("status.json", b'{"state": "done", "seconds": "1"}', "seconds is '1', a number is expected"),
    ("ledger.csv.gz", b"", "it has the columns []"),
    ("ledger.csv.gz", b"run,stream\n0,0\n", "Not a gzipped file"),
    ("ledger.csv.gz", gzip.compress(b"run,stream\n0,0\n", mtime=0), "it has the columns ['run', 'stream']"),
    ("ledger.csv.gz", gzip.compress(b"run,stream,position,token,round,source,t_ns\n0,0\n", mtime=0), "columns"),
    ("ledger.csv.gz", gzip.compress(b"run,stream,position,token,round,source,t_ns\n0,0,0,5,-,v,1\n", mtime=0), "'-'"),
    ("ledger.csv.gz", gzip.compress(b"\xff\xfe" * 90, mtime=0), "codec can't decode"),
    ("ledger.csv.gz", gzip.compress(b"run,stream,position" * 90, mtime=0)[:-9], "end-of-stream"),
    ("ledger.csv.gz", gzip.compress(b"", mtime=0)[:10] + b"\x07" * 40, "Error -3 while decompressing"),
]


@pytest.mark.parametrize(("file", "content", "why"), DAMAGE)
def test_a_damaged_cell_names_the_file_and_what_is_wrong(tmp_path, file, content, why):
    folder = tmp_path / "box" / "cell"
    write(folder, ledger=[Emit(0, 0, 0, 5, -1, "prefill", 10)])
    (folder / file).write_bytes(content)
    found = read_cell(folder)
    assert isinstance(found, DamagedCell)
    assert (found.machine, found.cell) == ("box", "cell")
    assert found.reason.startswith(f"{file}: ") and why in found.reason
    assert "\n" not in found.reason and str(tmp_path) not in found.reason and len(found.reason) < 400
    with pytest.raises(UserError, match=r"cell .* is damaged"):
        load_cell(folder)


@pytest.mark.parametrize("file", ["cell.yaml", "env.json", "facts.json"])
def test_a_missing_or_unreadable_file_is_damage(tmp_path, file):
    folder = tmp_path / "box" / "cell"
    write(folder)
    (folder / file).unlink()
    assert read_cell(folder).reason == f"{file}: No such file or directory"
    (folder / file).mkdir()
    assert read_cell(folder).reason == f"{file}: Is a directory"


def test_a_damaged_cell_takes_no_other_away(tmp_path):
    for name in "abc":
        write(tmp_path / "box" / name)
    (tmp_path / "box" / "b" / "env.json").write_text("")
    found = load_cells(tmp_path)
    assert [cell.cell for cell in found] == ["a", "b", "c"]
    assert [isinstance(cell, DamagedCell) for cell in found] == [False, True, False]


def test_every_cell_of_the_reference_has_the_shape():
    found = load_cells(ROOT / "results" / "reference")
    assert len(found) > 50
    assert [cell for cell in found if isinstance(cell, DamagedCell)] == []


def test_another_tables_columns_are_refused(tmp_path):
    folder = tmp_path / "box" / "cell"
    write(folder, ledger=[Emit(0, 0, 0, 5, -1, "prefill", 10)])
    (folder / "ledger.csv.gz").rename(folder / "rounds.csv.gz")
    with pytest.raises(UserError, match="has the columns"):
        load_cell(folder)


def test_no_folder_and_no_permission_are_sentences(tmp_path):
    with pytest.raises(UserError, match="run `make bench`"):
        load_cells(tmp_path / "absent")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        check_writable(tmp_path / "file" / "results")


def before_manifests(folder):
    """Make of a cell one of schema 2."""
    status = json.loads((folder / "status.json").read_text())
    del status["manifest"]
    (folder / "status.json").write_text(json.dumps(status))
    text = (folder / "cell.yaml").read_text()
    (folder / "cell.yaml").write_text(text.replace("schema: 3", "schema: 2"))


def _rewrite_steps(folder, change):
    path = folder / "steps.csv.gz"
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))


def test_a_column_that_an_older_record_lacks_has_its_default(tmp_path):
    folder = tmp_path / "box" / "cell"
    write(folder, steps=[Step(1, 0, 0, "sequences", 5, 3), Step(2, 0, 1, "tokens", 7, 3, 0)])
    assert load_cell(folder).steps["settled"].tolist() == [1, 0]
    before_manifests(folder)
    _rewrite_steps(folder, lambda text: "\n".join(line.rpartition(",")[0] for line in text.splitlines()))
    steps = load_cell(folder).steps
    assert steps["settled"].tolist() == [1, 1]
    assert steps["decode_ns"].tolist() == [5, 7]


@pytest.mark.parametrize("change", [
    lambda text: text.replace("settled", "steady"),
    lambda text: text.replace("decode_ns,", "decode_us,"),
    lambda text: text.replace("width,repeat", "repeat,width"),
    lambda text: text.replace("width,", "", 1),
], ids=["unknown", "renamed", "moved", "absent without a default"])  # fmt: skip
def test_other_columns_than_those_of_the_record_are_an_error(tmp_path, change):
    folder = tmp_path / "box" / "cell"
    write(folder, steps=[Step(1, 0, 0, "sequences", 5, 3)])
    _rewrite_steps(folder, change)
    with pytest.raises(UserError, match=r"steps\.csv\.gz: it has the columns"):
        load_cell(folder)


@pytest.mark.parametrize("block", [-1, 2_000_000_000])
def test_a_block_that_nobody_can_have_measured_is_damage(tmp_path, block):
    source = folder_of("9528e9b90995")
    folder = tmp_path / "box" / source.name
    shutil.copytree(source, folder)
    path = folder / "runs.csv.gz"
    head, first, *rest = gzip.decompress(path.read_bytes()).decode().splitlines()
    place = head.split(",").index("block")
    cells = first.split(",")
    cells[place] = str(block)
    path.write_bytes(gzip.compress("\n".join([head, ",".join(cells), *rest, ""]).encode()))
    why = read_cell(folder).reason
    assert why.startswith("runs.csv.gz: it has ") and str(block) in why


def test_every_cell_of_the_reference_is_readable():
    found = load_cells(ROOT / "results" / "reference")
    assert len(found) >= 50
    profiles = [cell for cell in found if len(cell.steps["width"])]
    assert profiles and all((cell.steps["settled"] == 1).any() for cell in profiles)


def test_every_cell_of_an_earlier_release_is_readable():
    found = load_cells(EARLIER)
    assert found and {cell.config.get("schema") for cell in found} == {1}
    profiles = [cell for cell in found if len(cell.steps["width"])]
    assert profiles and all((cell.steps["settled"] == 1).all() for cell in profiles), "else settled"
