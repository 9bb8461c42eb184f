"""The verb: which records it finds, what it prints, and what it says where there are none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.advise import advice, model_word
from bench.cli import main
from bench.plan.compose import compose_points

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
CELLS = ("8ded458b1115", "5aeb560b2ff8", "d5467a99f243")
"""A profile, a lookup and a jacobi cell of the reference."""


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """A results folder with three cells of one machine."""
    for cell in CELLS:
        shutil.copytree(RESULTS / "reference" / "amd-epyc-2c" / cell, tmp_path / "amd-epyc-2c" / cell)
    return tmp_path


def test_advice_in_the_terminal(few: Path, capsys) -> None:
    assert main(["advise", f"results={few}", "machine=amd-epyc-2c"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("smollm2-135m on amd-epyc-2c, engine 0.3.36-0c1e57098-cpu+393b1ef5; 3 cells in ")
    assert "1.18   1.10 to 1.27" in told and "perhaps lookup" in told
    assert "Nothing measured here is shown to be faster than plain decoding." in told
    assert "jacobi window=4: 0.38x (0.35 to 0.41); acceptance too low: 0.03, it pays from 0.76" in told
    assert "python -m bench sweep model=smollm2-135m method=stagger" in told


def test_every_command_that_it_gives_can_be_composed(few: Path, capsys) -> None:
    assert main(["advise", f"results={few}", "machine=amd-epyc-2c"]) == 0
    told = capsys.readouterr().out.splitlines()
    commands = [line.split("sweep ")[1].split() for line in told if "bench sweep" in line]
    assert len(commands) >= 3
    for words in commands:
        assert compose_points(words)


def test_local_records_come_before_the_reference(few: Path) -> None:
    found, folder = advice("smollm2-135m", few, "amd-epyc-2c")
    assert (folder, set(found.cells)) == (few / "amd-epyc-2c", set(CELLS))
    (few / "reference").mkdir()
    shutil.move(few / "amd-epyc-2c", few / "reference" / "amd-epyc-2c")
    found, folder = advice("smollm2-135m", few, "amd-epyc-2c")
    assert (folder, set(found.cells)) == (few / "reference" / "amd-epyc-2c", set(CELLS))


def test_no_records_is_one_sentence_with_the_command(few: Path, capsys) -> None:
    assert main(["advise", "model=pti-tiny", f"results={few}", "machine=elsewhere"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "no records of model=pti-tiny on elsewhere" in printed.err
    assert "run `python -m bench sweep model=pti-tiny" in printed.err
    assert printed.err.rstrip().endswith("records of other machines: machine=amd-epyc-2c")


def test_a_model_outside_the_groups_is_named_by_its_file() -> None:
    assert model_word("smollm2-135m") == "model=smollm2-135m"
    assert model_word("qwen3-8b-q4_k_m") == "model=gguf model.path=qwen3-8b-q4_k_m.gguf"
