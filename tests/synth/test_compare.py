"""Two files of one shape under one model: equal files give 1, what cannot be compared is a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.synth import writer
from bench.synth.compare import Stepper, Weights, compare, interval_of_median, main
from bench.synth.shape import order


def made(folder: Path, name: str, *words: str) -> Path:
    path = folder / f"{name}.gguf"
    writer.write(order("dense-mini", words), path)
    return path


def test_the_weights_change_under_the_model(tmp_path: Path) -> None:
    """Decoded with the other file's weights put in, it says what the other file says when it is loaded."""
    first, second = made(tmp_path, "a"), made(tmp_path, "b", "seed=2")
    loaded = Stepper(second, 1, 1)
    _, wanted = loaded.seconds()
    loaded.close()
    stepper = Stepper(first, 1, 1)
    try:
        _, before = stepper.seconds()
        with first.open("r+b") as file:
            Weights(second).put(file.fileno(), Weights(first).places)
        _, after = stepper.seconds()
    finally:
        stepper.close()
    assert not np.array_equal(before, wanted)
    np.testing.assert_array_equal(after, wanted)


def test_a_comparison_gives_a_pair_a_block(tmp_path: Path) -> None:
    times = compare(made(tmp_path, "a"), made(tmp_path, "b", "seed=2"), width=2, blocks=3, threads=1)
    assert len(times) == 3
    assert all(0 < seconds < 10 for pair in times for seconds in pair)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["a", "c"], "differ in 9 tensors, such as blk.3."), (["a", "none"], "there is no model file"),
     (["a"], "needs two model files"), (["a", "a", "0"], "needs two model files")],
)  # fmt: skip
def test_what_cannot_be_compared_is_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "a")
    made(tmp_path, "c", "layers=3")
    monkeypatch.chdir(tmp_path)
    assert main([f"{word}.gguf" if word.isalpha() else word for word in words]) == 2
    assert sentence in capsys.readouterr().err


def test_the_interval_of_a_median_covers_it_as_often_as_it_says() -> None:
    """Against draws whose median is known. It can only take whole numbers of values, so it covers a little more."""
    draws = np.random.default_rng(1).exponential(size=(1000, 40)) - np.log(2)
    inside = [low <= 0 <= high for low, high in map(interval_of_median, draws)]
    assert 0.935 < np.mean(inside) < 0.985
