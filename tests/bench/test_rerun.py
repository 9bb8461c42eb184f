"""A cell measured again from its record alone: what is run, what is compared, and what cannot be."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from bench import rerun
from bench.cli import main
from bench.errors import UserError
from bench.judge.findings import Findings
from bench.records.manifest import UNPROVEN
from bench.run import sweep as sweep_module
from tests.faults.stored import unsealed


def reference(kind: str) -> Path:
    """A cell of the small model by its kind."""
    return next(folder for folder in unsealed(kind) if "  name: pti-tiny\n" in (folder / "cell.yaml").read_text())


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The second measurement is a copy of a folder; what was asked for is kept."""
    seen = SimpleNamespace(cells=[], source=None)

    def run_cell(cell: Any, environment: dict[str, Any], progress: Any) -> dict[str, Any]:
        seen.cells.append(cell)
        shutil.copytree(seen.source, cell.folder)
        return {"state": "done", "reason": "", "seconds": 1.0}

    monkeypatch.setattr(sweep_module, "run_cell", run_cell)
    monkeypatch.setattr("bench.host.cpus.check_threads", lambda threads, *more: threads)
    # The copy lies under another id, which is what invariants are there to tell.
    monkeypatch.setattr("bench.judge.invariants.INVARIANTS", ())
    return seen


@pytest.mark.parametrize("kind", ["contrast", "profile"])
def test_the_same_rows_come_to_the_same_conclusion(runs: SimpleNamespace, kind: str, tmp_path: Path, capsys) -> None:
    folder = runs.source = reference(kind)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["rerun", str(folder), f"results={tmp_path / 'kept'}"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[-1] == "the two agree" and UNPROVEN.format(schema=1) in told
    assert ("speed-up, answer: " in told) == (kind == "contrast")
    (cell,) = runs.cells
    config = yaml.safe_load((folder / "cell.yaml").read_text())
    assert cell.kind == kind and cell.config["engine"] == config["engine"] and cell.model_path.is_file()
    assert "schema" not in cell.config and cell.folder.parent.parent == tmp_path / "kept"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_id_is_enough_and_another_conclusion_is_exit_code_1(runs: SimpleNamespace, tmp_path: Path, monkeypatch,
                                                               capsys) -> None:  # fmt: skip
    folder = reference("contrast")
    shutil.copytree(folder, tmp_path / "results" / "amd-epyc-2c" / folder.name)
    monkeypatch.chdir(tmp_path)
    codes = set()
    for other in unsealed("contrast")[:12]:
        runs.source = other
        codes.add(main(["rerun", folder.name]))
        told = capsys.readouterr().out
        assert ("NOT the same conclusion" in told) == told.endswith("the two do NOT agree\n")
    assert codes == {0, 1}


def test_a_second_measurement_that_cannot_be_read_is_a_sentence(runs: SimpleNamespace, tmp_path: Path, capsys) -> None:
    runs.source = tmp_path / "cut"
    shutil.copytree(reference("contrast"), runs.source)
    (runs.source / "env.json").write_text("")
    assert main(["rerun", str(reference("contrast"))]) == 2
    assert "the cell that was just measured is damaged" in capsys.readouterr().err


def edit(name: str, change: Callable[[dict], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        read, write = (yaml.safe_load, yaml.safe_dump) if name.endswith("yaml") else (json.loads, json.dumps)
        content = read((folder / name).read_text())
        change(content)
        (folder / name).write_text(write(content))

    return damage


@pytest.mark.parametrize(("damage", "why"), [
    (lambda folder: (folder / "env.json").write_text(""), "is damaged"),
    (edit("status.json", lambda status: status.update(state="failed")), "is failed; a sweep measures it again"),
    (edit("facts.json", lambda facts: facts["model"].update(sha256="0" * 64)), "another file; give the right one"),
    (edit("cell.yaml", lambda config: config["model"].update(file=None)), "give it with model.path=FILE"),
    (edit("cell.yaml", lambda config: config["engine"].update(warp=1)), "cannot be run again by this version"),
    (edit("cell.yaml", lambda config: config.update(files={"draft_model": "ab"})), "with method.draft_model=FILE"),
])  # fmt: skip
def test_what_cannot_be_measured_again_is_a_sentence(tmp_path: Path, runs, damage, why: str, capsys) -> None:
    folder = tmp_path / "box" / "cell"
    shutil.copytree(reference("contrast"), folder)
    damage(folder)
    assert main(["rerun", str(folder)]) == 2
    assert why in capsys.readouterr().err and not runs.cells


@pytest.mark.parametrize("words", [[], ["a", "b"], ["no-such-cell"], ["x", "colour=1"]])
def test_one_cell_is_wanted(words: list[str], capsys) -> None:
    assert main(["rerun", *words]) == 2


def test_figures_that_only_one_has_do_not_agree() -> None:
    row = {"layout": "tokens", "width": 2, "relative_cost": 1.0, "ci_low": 0.9, "ci_high": 1.1}

    def costs(*rows: dict[str, Any]) -> Findings:
        return SimpleNamespace(trials=[], speedup=[], step_cost=list(rows))  # type: ignore[return-value]

    assert rerun.compare(costs(row), costs(row))[1]
    assert not rerun.compare(costs(row), costs())[1] and not rerun.compare(costs(), costs())[1]
    assert not rerun.compare(costs(row), costs(row | {"ci_low": 1.2, "ci_high": 1.3}))[1]


def test_a_folder_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="the folder or id of no cells"):
        rerun.find("0" * 12)


@pytest.mark.parametrize("word", ["*", "**", "[a-f0-9]*", "?"])
def test_an_id_is_no_pattern(word: str) -> None:
    with pytest.raises(UserError, match="of no cells; give the folder of one"):
        rerun.find(word)
