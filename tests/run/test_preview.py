"""`sweep --plan`: the cells that the sweep has, in the state that they are in, and nothing written or measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.cli import main
from bench.records.cells import write_cell
from bench.run.prepared import prepare
from bench.run.preview import preview, size_text

WORDS = ["prompts=short", "measure=quick", "n_predict=6", "engine.n_ctx=256", "streams=1,2,4", "machine=box"]
ID = re.compile(r"^[0-9a-f]{12}  (\w+)", re.MULTILINE)


def test_a_plan_names_every_cell_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "deep" / "results"
    words = [*WORDS, f"results={root}"]
    assert main(["sweep", "--plan", *words]) == 0
    printed = capsys.readouterr().out
    total = " ".join(printed.split())
    planned, _, _ = prepare(words, writes=False)
    assert [line.split()[0] for line in printed.splitlines() if ID.match(line)] == [cell.id for cell in planned]
    assert printed.startswith("4 cells of 3 points on box: 4 run\n")
    assert "4 to run: about " in total and " are free" in total and "minutes of 4 of 4: " in total
    assert not (tmp_path / "deep").exists()


def test_cells_that_are_there_cost_nothing_and_failed_ones_are_told_apart(tmp_path: Path) -> None:
    words = [*WORDS, f"results={tmp_path}"]
    planned, _, environments = prepare(words)
    env = next(iter(environments.values()))
    for cell, state in zip(planned, ("done", "failed", "done"), strict=False):
        write_cell(cell.folder, config=cell.config, env=env, status={"state": state, "reason": "", "seconds": 3.0})
    (planned[2].folder / "facts.json").write_text("{}")
    text = "\n".join(preview(words))
    assert ID.findall(text) == ["done", "again", "again", "run"]
    assert "3 to run" in text and "done: stored and whole" in text
    for cell in planned:
        write_cell(cell.folder, config=cell.config, env=env, status={"state": "done", "reason": "", "seconds": 3.0})
    assert "Nothing to run: every cell is stored." in preview(words)


def test_no_line_is_cut_off_or_wider_than_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ["method=native", "method.type=ngram-map-k4v", "method.n=4", "method.m=8", "depth=64",
             f"results={tmp_path}"]  # fmt: skip
    lines = list(preview(words))
    assert max(map(len, lines)) <= 80
    assert "behind 64 tokens" in " ".join(" ".join(lines).split())


def test_what_a_sweep_refuses_its_plan_refuses_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--plan", "temprature=0", f"results={tmp_path}"]) == 2
    assert "did you mean 'temperature'" in capsys.readouterr().err


def test_sizes_read_as_a_person_says_them() -> None:
    assert [size_text(count) for count in (400, 45_300, 1.25e6, 8.18e10)] == ["0 kB", "45 kB", "1.25 MB", "81.8 GB"]
