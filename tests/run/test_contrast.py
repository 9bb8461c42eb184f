"""The contrast on the toy engine, through the judge: the truth comes back, and each fault is caught."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.judge import judge
from bench.plan.cells import cells
from bench.plan.config import Config, EngineConfig, MethodConfig
from bench.records.cells import load_cell, write_cell
from bench.run.arms import Prompt
from bench.run.contrast import Contrast, tasks
from pti_loop.engine import EngineError, Unsupported
from pti_loop.fake import FakeModel, Faults
from pti_loop.parameters import declared, resolve

MS = 1_000_000
PROMPTS = [Prompt(f"{kind}{i}", kind, tuple(range(3 + i, 9 + i))) for kind in ("code", "prose") for i in range(4)]
ENGINE = {
    "machine": {"name": "toy", "cpu": "toy", "gpus": []},
    "engine": {"build": "toy"},
    "time_utc": "2026-01-01T00:00:00Z",
}


def toy(cost=0.3, **faults) -> FakeModel:
    return FakeModel(step_ns=lambda w: int(10 * MS * (1 + cost * (w - 1))), faults=Faults(**faults))


def config(method="stagger", streams=4, temperature=0.0, n_predict=24, **parameters) -> Config:
    streams = streams if declared()[method].answers != "one" else 1
    made = Config(method=MethodConfig(method, dict(resolve(method, parameters))), streams=streams,
                  temperature=temperature, n_predict=n_predict, engine=EngineConfig(threads=1))  # fmt: skip
    made.measure.per_class = 3
    return made


def judged(tmp_path, model, settings: Config):
    """Measure on the toy, store, read back and judge: the whole way but the model."""
    result = Contrast(model, settings, PROMPTS, "order", lambda: (0.0, 0.0), lambda *_: None).run()
    result.facts |= {
        "model": {"name": "toy", "step_bytes": 1_000_000, "kv_bytes_per_token": 8, "state_bytes_per_sequence": 0,
                  "quantization": "F32", "synthetic": False},
        "bandwidth": {"read_gb_s": 20.0, "repeats": [19.0, 20.0], "threads": 1, "bytes": 1_000_000},
        "memory": {},
    }  # fmt: skip
    settings.model.path = "/toy.gguf"
    settings.prompts.items = [{"id": p.id, "class": p.kind, "text": p.id} for p in PROMPTS]
    settings.profile = False
    (cell,) = cells([settings], tmp_path, "toy", "toy", {Path("/toy.gguf"): "w"})
    done = {"state": "done", "reason": "", "seconds": 1.0}
    write_cell(cell.folder, config=cell.config, env=ENGINE, status=done, facts=result.facts,
               tables=result.tables)  # fmt: skip
    return judge([load_cell(cell.folder)])


def everything(findings):
    return next(row for row in findings.speedup if row["prompt_class"] == "all" and row["scope"] == "answer")


def voids(findings):
    return {row["control"] for row in findings.controls if row["severity"] == "void"}


def test_published_loop_is_slower_as_one_answer_and_its_count_flatters(tmp_path):
    row = everything(judged(tmp_path, toy(), config(n_predict=81)))
    # Start-up: 3 steps of 1; then 77 rounds of width 4, each 1.9 steps, give the 80 distinct tokens after the first.
    truth = 80 / (3 + 77 * 1.9)
    assert row["speedup"] == pytest.approx(truth, rel=1e-6)
    assert row["ci_low"] == pytest.approx(truth, rel=1e-4)
    assert row["counted_speedup"] == pytest.approx((77 * 4 - 6 + 6) / (3 + 77 * 1.9), rel=0.03)
    assert row["lossless"] == "identical"
    assert not row["void"], row["void_reason"]


def test_steady_window_leaves_the_startup_out(tmp_path):
    row = everything(judged(tmp_path, toy(), config(n_predict=81)))
    assert row["steady_speedup"] == pytest.approx(80 / (77 * 1.9), rel=1e-6)


@pytest.mark.parametrize("streams", [2, 3, 4])
def test_packed_gives_the_aggregate_and_each_answer_its_share(tmp_path, streams):
    findings = judged(tmp_path, toy(), config("packed", streams))
    row = everything(findings)
    cost = 1 + 0.3 * (streams - 1)
    assert row["speedup"] == pytest.approx(1 / cost, rel=1e-6)
    assert row["aggregate_tok_s"] == pytest.approx(100 * streams / cost, rel=1e-6)
    assert not row["void"], row["void_reason"]
    aggregate = next(r for r in findings.speedup if r["prompt_class"] == "all" and r["scope"] == "aggregate")
    assert aggregate["speedup"] == pytest.approx(streams / cost, rel=1e-6)


def test_speed_up_is_tokens_a_round_over_round_cost(tmp_path):
    row = everything(judged(tmp_path, toy(), config("jacobi")))
    assert row["tokens_per_round"] / row["relative_round_cost"] == pytest.approx(row["speedup"], rel=0.02)


@pytest.mark.parametrize(
    ("method", "temperature"),
    [("stagger", 0.0), ("stagger", 0.7), ("jacobi", 0.0), ("jacobi", 0.7), ("packed", 0.7)],
)
def test_a_sound_cell_is_not_void(tmp_path, method, temperature):
    findings = judged(tmp_path, toy(), config(method, temperature=temperature))
    assert voids(findings) == set(), [row["sentence"] for row in findings.controls]


def test_controls_run_in_their_blocks_only(tmp_path):
    settings = config()
    result = Contrast(toy(), settings, PROMPTS, "order", lambda: (0.0, 0.0), lambda *_: None).run()
    by_block: dict[int, list[str]] = {}
    for run in result.tables["runs"]:
        by_block.setdefault(run.block, []).append(run.arm)
    controlled = [arms for arms in by_block.values() if "sabotage" in arms]
    assert len(controlled) == settings.measure.control_blocks
    for arms in by_block.values():
        assert arms == arms[::-1], "a block is a palindrome"
        assert {"baseline", "treatment"} <= set(arms)
    assert sum("again" in arms for arms in by_block.values()) == settings.measure.again_blocks
    assert {"sabotage", "oracle", "solo"} <= set(controlled[0])


def test_the_first_arm_of_a_block_is_drawn(tmp_path):
    result = Contrast(toy(), config(), PROMPTS, "order", lambda: (0.0, 0.0), lambda *_: None).run()
    assert len({run.arm for run in result.tables["runs"] if run.order == 0}) > 1


def test_a_loop_that_takes_tokens_back_is_divergent(tmp_path):
    """Above temperature 0 the published loop says guesses as tokens, and another token at the same place later."""
    published = judged(tmp_path / "a", toy(), config(streams=2, temperature=0.7))
    honest = judged(tmp_path / "b", toy(), config(streams=2, temperature=0.7, emission="distinct"))
    assert everything(published)["lossless"] == "divergent"
    assert everything(honest)["lossless"] == "identical"
    assert voids(published) == set(), "its acceptance can still be judged"


def test_collision_is_judged_from_independent_draws(tmp_path):
    settings = config(streams=2, temperature=0.7, n_predict=60)
    findings = judged(tmp_path, toy(), settings)
    pooled = next(row for row in findings.acceptance if row["position"] == 0)
    assert pooled["difference_low"] <= 0 <= pooled["difference_high"]
    assert abs(pooled["rate"] - pooled["collision_mean"]) < 0.1


def test_idle_sequences_degrade_the_same_context_baseline_only(tmp_path):
    row = everything(judged(tmp_path, toy(idle_ns=5 * MS), config("packed")))
    assert row["solo_speedup"] > 1.5 * row["speedup"], "the flattering denominator is shown, apart"


def test_wrong_logits_at_a_width_are_never_a_near_tie(tmp_path):
    findings = judged(tmp_path, toy(wrong_from_width=4), config("packed"))
    assert everything(findings)["lossless"] == "divergent"


def test_a_shape_that_computes_another_model_is_no_noise(tmp_path):
    assert "noise" in voids(judged(tmp_path, toy(wrong_from_width=4), config("packed")))


def test_guesses_that_rounding_takes_back_are_graded_as_they_were_given(tmp_path):
    """At temperature 0 too: a near tie makes the published loop say two tokens at one place."""
    findings = judged(tmp_path, replace(toy(noise=0.05), spread=0.1), config(streams=4))
    assert "lossless" not in voids(findings), [row["sentence"] for row in findings.controls]
    rounds = next(row for row in findings.acceptance if row["position"] == 0)
    assert rounds["rate"] < 1, "the toy must take something back, or this tests nothing"


def test_rounding_noise_is_a_near_tie(tmp_path):
    model = replace(toy(noise=0.02), spread=0.05)
    row = everything(judged(tmp_path, model, config("packed")))
    assert row["lossless"] in ("near_tie", "identical")
    assert row["near_tie_share"] > 0, "the toy must differ somewhere, or this tests nothing"


def test_a_lying_rollback_is_found_before_anything_is_timed(tmp_path):
    model = toy(rollback_lies=True)
    row = everything(judged(tmp_path, model, config("jacobi")))
    assert row["lossless"] == "identical", "the probe must have taken the copy, which does not lie"
    with pytest.raises(Unsupported, match=r"rewind: after a rollback the logits are [\d.]+ away"):
        judged(tmp_path, model, config("jacobi", rollback="rewind"))


def test_a_draft_longer_than_the_batch_is_unsupported():
    settings = config("lookup", draft=40)
    settings.engine.n_batch = 32
    with pytest.raises(Unsupported, match=r"lookup draft=40 decodes 41 tokens and engine.n_batch=32 or"):
        Contrast(toy(), settings, PROMPTS, "order", lambda: (0.0, 0.0), lambda *_: None)


GUESSING = [
    ("lookup", {"draft": 3}), ("draft", {"draft": 2, "draft_model": "3"}), ("draft", {"draft": 3, "draft_model": "0"}),
    ("twin", {"draft": 2, "twin": "1"}), ("adapter", {"draft": 2, "adapter": "5"}), ("mtp", {"draft": 2}),
    ("lookup_mtp", {"draft": 4, "head_draft": 2}), ("packed", {"drafter": "mtp", "draft": 2}),
    ("packed", {"drafter": "lookup", "draft": 3}), ("stagger", {"rebuild": "mtp", "emission": "distinct"}),
]  # fmt: skip


@pytest.mark.parametrize(("temperature", "no_rewind"), [(0.0, True), (0.7, False)])
@pytest.mark.parametrize(("method", "parameters"), GUESSING)
def test_every_way_of_guessing_is_a_sound_cell(tmp_path, method, parameters, no_rewind, temperature):
    """Sabotage accepts nothing and says the same, oracle accepts all, and every text is plain decoding's."""
    model = toy(no_rewind=no_rewind, no_snapshots=no_rewind and temperature > 0, bad_head=0.3)
    for key in {"draft_model", "adapter"} & set(parameters):
        (tmp_path / parameters[key]).write_bytes(b"")
        parameters = parameters | {key: str(tmp_path / parameters[key])}
    settings = config(method, temperature=temperature, streams=3, **parameters)
    findings = judged(tmp_path, model, settings)
    assert everything(findings)["lossless"] == "identical"
    assert voids(findings) == set(), [row["sentence"] for row in findings.controls]
    sentences = {row["control"]: row["sentence"] for row in findings.controls}
    assert sentences["sabotage"].startswith("0 of ")
    tested = sentences["oracle"].split(" right")[0].split(" of ")
    assert tested[0] == tested[1] != "0"


def test_cached_prompts_stop_the_cell():
    with pytest.raises(EngineError, match="still holds"):
        Contrast(toy(cached_prompt=True), config(), PROMPTS, "x", lambda: (0.0, 0.0), lambda *_: None).run()


def test_independent_answers_group_prompts_of_a_class_or_mix():
    grouped = tasks(PROMPTS, config("packed", 4), independent=True)
    assert {task.kind for task in grouped} == {"code", "prose"}
    mixed = tasks(PROMPTS, config("packed", 6), independent=True)
    assert {task.kind for task in mixed} == {"mixed"}
    assert all(len({prompt.id for prompt in task.prompts}) == 6 for task in mixed)
