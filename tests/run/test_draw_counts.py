"""Draws counted through the real loops, stored, read back and judged: sound methods pass, broken ones do not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bench.judge.measure.chi_square import DIFFERENT, SAME, TOO_FEW, Group, assess
from bench.plan.settings import Config, EngineConfig, MethodConfig
from bench.run import draw_counts
from bench.run.arms import Arms, Prompt, Task
from bench.run.draw_counts import Biased, Distribution, Held, probabilities, undecided
from pti_loop import loop, speculative
from pti_loop.llama.model import LlamaModel
from pti_loop.parameters import resolve
from pti_loop.sampling import Choice, Sampler
from tests.run.test_contrast import config, judged, toy, voids

TINY = Path(__file__).resolve().parents[2] / "models" / "pti-tiny" / "pti-tiny.Q8_0.gguf"


def counted(tmp_path, model, runs: int = 200, temperature: float = 1.0, **more):
    settings = config(temperature=temperature, n_predict=12, **more)
    settings.measure.per_class, settings.measure.distribution = 1, runs
    return judged(tmp_path, model, settings)


def verdicts(findings) -> dict[str, str]:
    return {row["arm"]: row["verdict"] for row in findings.distribution}


@pytest.mark.parametrize(
    "method",
    [{"method": "jacobi"}, {"method": "lookup", "ngram": 1, "draft": 3}, {"method": "packed", "streams": 2},
     {"emission": "distinct", "rebuild": "exact", "streams": 3}, {"method": "autoregressive"}],
    ids=lambda method: method.get("method", "stagger"),
)  # fmt: skip
def test_sound_methods_pass_and_a_planted_fault_is_seen(tmp_path, method):
    findings = counted(tmp_path, toy(), **method)
    assert verdicts(findings) == {"treatment": SAME, "biased": DIFFERENT}
    treated = findings.distribution[0]
    assert treated["tv"] < treated["tv_high"]
    assert treated["tokens"] >= 200
    assert (treated["tested"] > 0) == (method.get("method") not in ("packed", "autoregressive"))
    assert "distribution" not in voids(findings)
    assert len([row for row in findings.controls if row["control"] == "distribution"]) == 1


def test_a_rollback_that_keeps_the_state_is_another_distribution(tmp_path, monkeypatch):
    """The probe would not let it pass; whoever trusts a return code has this."""
    monkeypatch.setattr("pti_loop.rollback_choice.cheapest", lambda findings: findings[0])
    findings = counted(tmp_path, toy(rollback_lies=True), method="jacobi")
    assert verdicts(findings)["treatment"] == DIFFERENT
    assert "distribution" in voids(findings)
    row = next(row for row in findings.speedup if row["prompt_class"] == "all")
    assert row["void"]
    assert "so they have no speed" in row["void_reason"]


def test_a_first_guess_that_nobody_checks_is_another_distribution(tmp_path, monkeypatch):
    def unchecked(guesses, choices, *more):
        if len(guesses) > 1:
            choices._made[0] = Choice(guesses[1], math.nan)
        return loop.verify(guesses, choices, *more)

    monkeypatch.setattr(speculative, "verify", unchecked)
    findings = counted(tmp_path, toy(), method="jacobi")
    assert verdicts(findings)["treatment"] == DIFFERENT


def test_a_temperature_that_is_not_obeyed_is_another_distribution(tmp_path, monkeypatch):
    def sharper(self, logits, *key):
        return Sampler.draw(self, 1.3 * logits, *key) if key[2] else Choice(self._held, math.nan)

    monkeypatch.setattr(Held, "draw", sharper)
    assert verdicts(counted(tmp_path, toy(), method="jacobi", runs=500))["treatment"] == DIFFERENT


def test_few_draws_are_a_warning_and_none_are_nothing(tmp_path):
    findings = counted(tmp_path / "few", toy(), runs=50, method="jacobi")
    assert verdicts(findings)["treatment"] == TOO_FEW
    (control,) = [row for row in findings.controls if row["control"] == "distribution"]
    assert control["severity"] == "warning"
    assert "raise measure.distribution" in control["sentence"]
    for more in ({"runs": 0}, {"temperature": 0.0}):
        findings = counted(tmp_path / "none", toy(), method="jacobi", **more)
        assert findings.distribution == []
        assert all(row["control"] != "distribution" for row in findings.controls)


def test_the_planted_fault_is_what_it_says():
    """A guess of the two likeliest is taken, any other is not; its distance from p is r (1 - r)."""
    logits = np.log(np.array([0.4, 0.25, 0.2, 0.15], dtype=np.float32))
    common = (4, 1.0, 3)
    own = [Held(9, *common).draw(logits, 0, 0, position).token for position in range(1, 2000)]
    assert Held(9, *common).draw(logits, 0, 0, 0).token == 9
    for guess in range(4):
        said = [Biased([9] + [guess] * 2000, *common).draw(logits, 0, 0, position).token for position in range(1, 2000)]
        assert said == ([guess] * 1999 if guess < 2 else own)
    share = np.exp(logits.astype(float))
    taken = np.where(np.arange(4) < 2, share * (1 + 0.35), 0.35 * share)
    assert taken.sum() == pytest.approx(1)
    assert undecided(share) == pytest.approx((((taken - share) ** 2) / share).sum())


@pytest.fixture(scope="module")
def tiny():
    loaded = LlamaModel(TINY, n_gpu_layers=0)
    yield loaded
    loaded.close()


def measured(model, text: str, runs: int, arms: tuple[str, ...], **method):
    """Assessments of a real model's draws, and its rows."""
    name = method.pop("name")
    settings = Config(method=MethodConfig(name, dict(resolve(name, method))), temperature=0.7, n_predict=8, streams=2,
                      engine=EngineConfig(threads=1, n_ctx=64))  # fmt: skip
    settings.measure.distribution = runs
    tokens = tuple(model.tokenize(text))
    opened = Arms(model, settings, tokens)
    try:
        task = Task(0, (Prompt("text", "prose", tokens),))
        found = opened.run("treatment", task, 1, 0)
        counts, facts = Distribution(opened, settings, [(task, found)], lambda *_: None).run(arms)
    finally:
        opened.close()
    assert facts["runs"] == runs
    assessed = {}
    for arm in arms:
        mine = [row for row in counts if row.arm == arm]
        groups = [[row for row in mine if row.group == number] for number in {row.group for row in mine}]
        for rows in groups:
            assert sum(row.probability for row in rows) == pytest.approx(1)
            assert sum(row.moved for row in rows) == pytest.approx(1)
        assessed[arm] = assess([Group(*(np.array([getattr(row, name) for row in rows]) for name in (
            "count", "probability", "moved"))) for rows in groups])  # fmt: skip
    return assessed, counts


def test_a_trained_hybrid_draws_from_its_own_distribution(tiny, monkeypatch):
    """Staggered copies of a recurrent state, whose exact softmax is taken by plain decoding."""
    monkeypatch.setattr(draw_counts, "POSITIONS", 2)
    found, counts = measured(tiny, "def add(first, second):\n    return", 100, ("treatment", "biased"), name="stagger",
                             emission="distinct", rebuild="exact")  # fmt: skip
    assert found["treatment"].verdict != DIFFERENT
    assert found["treatment"].tv < found["treatment"].tv_high
    assert found["biased"].verdict == DIFFERENT
    assert sum(row.count for row in counts if row.tested) >= 100


def test_the_default_model_draws_from_its_own_distribution(model, monkeypatch):
    """Tokens of prompt lookup on SmolLM2, half of them against a guess."""
    monkeypatch.setattr(draw_counts, "POSITIONS", 2)
    found, counts = measured(model, "one two three, one two four, one two", 40, ("treatment",), name="lookup", ngram=1,
                             draft=1)  # fmt: skip
    assert found["treatment"].verdict != DIFFERENT
    assert found["treatment"].tv < found["treatment"].tv_high
    assert sum(row.count for row in counts if row.tested) >= 40


def test_probabilities_are_a_softmax():
    logits = np.array([1.0, -2.0, 0.5, -np.inf], dtype=np.float32)
    share = probabilities(logits, 0.5)
    weights = [math.exp(value / 0.5) for value in (1.0, -2.0, 0.5)]
    assert share.tolist() == pytest.approx([weight / sum(weights) for weight in weights] + [0.0])
    assert draw_counts.POSITIONS >= 2
