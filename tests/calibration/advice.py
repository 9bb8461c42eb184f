"""Simulated machines with many arms: how often `advise` says to use one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.judge.predict.advice import USE, advise
from bench.judge.tables.contrast import SpeedUp
from tests.calibration.rates import judged
from tests.calibration.simulation import Noise, contrast, normal

ARMS = 12
NAN = float("nan")


def advised_machines(seed: int, machines: int, truth: float, arms: int, design: tuple[int, int]) -> int:
    """Machines on which an arm of `truth` is advised; `arms` of twelve have it, the others 0.98."""
    rng = np.random.default_rng(seed)
    used = 0
    for _ in range(machines):
        rows = [_row(rng, arm, truth if arm < arms else 0.98, design) for arm in range(ARMS)]
        cell = {"model": "toy", "machine": "box", "build": "b1", "state": "done", "time_utc": "", "cell": "c",
                "synthetic": False, "void": False, "method": "lookup", "reason": ""}  # fmt: skip
        findings: Any = SimpleNamespace(cells=[cell], speedup=rows, predictions=[], step_cost=[])
        found = advise(findings, "toy", "box", ("lookup",))
        assert found is not None
        wanted = {arm for arm in range(arms)}
        used += any(one.verdict == USE and one.row["parameters"]["draft"] in wanted for one in found.choices)
    return used


def _row(rng: np.random.Generator, arm: int, truth: float, design: tuple[int, int]) -> SpeedUp:
    table, _ = contrast(rng, truth, Noise(), *design, texts=normal(0.05))
    made, _ = judged(table, True)
    assert made.prompts is not None
    told, over = made.told, made.prompts
    ends = {f"{name}_{end}": value for name, one in (("ci", told), ("noise", made.noise), ("prompts", over))
            for end, value in zip(("low", "high"), one.interval(), strict=True)}  # fmt: skip
    figures = dict.fromkeys(
        ("tok_s", "baseline_tok_s", "counted_tok_s", "aggregate_tok_s", "near_tie_share", "divergent_share",
         "min_visible_effect", "counted_speedup", "steady_tok_s", "steady_speedup", "tokens_per_round",
         "steady_tokens_per_round", "counted_per_round", "tokens_per_round_answer", "relative_round_cost",
         "round_cost_low", "round_cost_high", "product_speedup", "outside_rounds", "host_share",
         "baseline_host_share"), 1.0)  # fmt: skip
    return SpeedUp(
        machine="box", build="b1", cells=[f"cell{arm:08d}"], model="toy", method="lookup", short=f"lookup draft={arm}",
        streams=1, temperature=0.0, prompt_class="all", scope="answer", lossless="identical", identical_share=1.0,
        answers_graded=6, divergent_prompts=0, divergent_names="", direction="", n_blocks=told.n_blocks,
        n_prompts=design[0], n_units=told.n_units, units=told.units, concurrent=1, speedup=told.ratio, **ends,
        **figures, speaks_of=made.speaks_of, freedom=told.freedom,
        conditions={"plain": False, "guesses": True, "parameters": {"draft": arm}},
    )  # fmt: skip
