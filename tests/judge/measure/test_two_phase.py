"""Two phases against truths that are chosen: coverage by simulation, the identity on the toy engine, and lies."""

from __future__ import annotations

import numpy as np
import pytest

from bench.judge.invariants import invariants
from bench.judge.measure.case import Case
from bench.judge.measure.two_phase import Texts
from bench.records.cells import load_cell
from tests.run.test_contrast import config, everything, judged, toy, voids

SIZES = [(6, 24, 0.26, 0.05), (3, 12, 0.26, 0.05), (6, 24, 0.05, 0.10)]


@pytest.mark.parametrize(("timed", "untimed", "between", "rest"), SIZES)
def test_the_interval_holds_the_mean_of_all_texts_that_there_are(timed, untimed, between, rest):
    rng, count, held, ours, plain = np.random.default_rng(1), 2000, 0, [], []
    for _ in range(count):
        x = rng.normal(0.1, between, timed + untimed)
        d = rng.normal(-0.02, rest, timed) + 0.1 * (x[:timed] - 0.1)  # not quite of slope 1
        low, high = np.log(Texts(x, d).estimate().interval())
        held += low <= 0.08 <= high
        ours.append(high - low)
        plain.append(2 * 2.57 * (x[:timed] + d).std(ddof=1) / np.sqrt(timed))
    assert held / count >= 0.93
    if between > rest:
        assert np.median(ours) < 0.6 * np.median(plain), "or it is worth nothing"


def cell_with(tmp_path, texts: int, change=lambda told: None):
    settings = config("jacobi", n_predict=32)
    settings.measure.per_class, settings.measure.texts = 2, texts
    findings = judged(tmp_path, toy(), settings)
    (path,) = tmp_path.glob("*/*/status.json")
    cell = load_cell(path.parent)
    change(cell.facts["untimed"])
    return findings, {one.control for one in invariants(Case(cell)) if one.severity == "void"}


def test_on_the_toy_the_ratio_is_the_mean_over_all_texts(tmp_path):
    """Its times are exact, so timing all four texts of each class must give what two timed and two counted ones do."""
    findings, failed = cell_with(tmp_path / "a", 2)
    row = everything(findings)
    assert not failed and not voids(findings)
    settings = config("jacobi", n_predict=32)
    settings.measure.per_class = 4
    whole = everything(judged(tmp_path / "b", toy(), settings))
    assert row["n_texts"] == 8 and row["texts_speedup"] == pytest.approx(whole["speedup"], rel=0.01)
    assert row["texts_low"] <= whole["speedup"] <= row["texts_high"]
    assert np.isnan(whole["texts_speedup"]) and whole["n_texts"] == 0


def longer(told):
    told[0]["tokens"] += 1


def fewer(told):
    told.pop()


def another(told):
    told[0]["prompt"] = "code0"


def no_rounds(told):
    told[1]["rounds"] = []


@pytest.mark.parametrize("change", [longer, fewer, another, no_rounds])
def test_texts_that_cannot_have_been_so_are_void(tmp_path, change):
    assert cell_with(tmp_path, 2, change)[1] == {"texts"}


def test_too_few_further_texts_say_nothing(tmp_path):
    findings, failed = cell_with(tmp_path, 1)
    assert not failed and np.isnan(everything(findings)["texts_speedup"])
