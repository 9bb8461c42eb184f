"""The contrast on the toy engine, through the judge: the truth comes back, and each fault is caught."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bench.judge import judge
from bench.plan.cells import cells
from bench.plan.settings import Config, EngineConfig, MethodConfig
from bench.records.cells import load_cell, write_cell
from bench.records.contexts import renewed
from bench.run.arms import Arms, Prompt
from bench.run.contrast import Contrast
from bench.run.tasks import tasks
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
    made.measure.per_class, made.measure.sharp = 3, False  # whoever judges it stores no grade on F16 weights
    return made


def judged(tmp_path, model, settings: Config, sample=lambda: (0.0, 0.0), name=""):
    """Measure on the toy, store, read back and judge: the whole way but the model.

    Of a `name` of its own the order is drawn, so that two configurations draw alike; of the id else.
    """
    settings.model.path = "/toy.gguf"
    settings.prompts.items = [{"id": p.id, "class": p.kind, "text": p.id} for p in PROMPTS]
    settings.profile = False
    (cell,) = cells([settings], tmp_path, "toy", "toy", {Path("/toy.gguf"): "w"})
    result = Contrast(model, settings, PROMPTS, name or cell.id, sample, lambda *_: None).run()
    result.facts |= {
        "model": {"name": "toy", "step_bytes": 1_000_000, "kv_bytes_per_token": 8, "state_bytes_per_sequence": 0,
                  "quantization": "F32", "synthetic": False},
        "bandwidth": {"read_gb_s": 20.0, "repeats": [19.0, 20.0], "threads": 1, "bytes": 1_000_000},
        "memory": {}, "process": {"draws": "argmax" if settings.temperature == 0 else "numpy"},
    }  # fmt: skip
    result.facts["stopping"]["seconds"] = 3000.0  # the toy's clock is no machine's
    done = {"state": "done", "reason": "", "seconds": 3600.0}
    write_cell(cell.folder, config=cell.config, env=ENGINE, status=done, facts=result.facts,
               tables=result.tables)  # fmt: skip
    return judge([load_cell(cell.folder)])


def everything(findings):
    return next(row for row in findings.speedup if row["prompt_class"] == "all" and row["scope"] == "answer")


def voids(findings):
    return {row["control"] for row in findings.controls if row["severity"] == "void"}


def test_published_loop_is_slower_as_one_answer_and_its_count_flatters(tmp_path):
    row = everything(judged(tmp_path, toy(), config(n_predict=81)))
    # Start-up: 3 steps of 1; then 80 rounds of width 4, each 1.9 steps, confirm the 80 tokens after the first.
    truth = 80 / (3 + 80 * 1.9)
    assert row["speedup"] == pytest.approx(truth, rel=1e-6)
    assert row["ci_low"] == pytest.approx(truth, rel=1e-4)
    assert row["counted_speedup"] == pytest.approx((80 * 4 - 6) / (3 + 80 * 1.9), rel=1e-6)
    assert row["lossless"] == "identical"
    assert not row["void"], row["void_reason"]


def test_steady_window_leaves_the_startup_out(tmp_path):
    row = everything(judged(tmp_path, toy(), config(n_predict=81)))
    assert row["steady_speedup"] == pytest.approx(1 / 1.9, rel=1e-6)


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
    carried = by_block.pop(max(by_block))
    assert carried == ["carry"] * 3
    for arms in by_block.values():
        assert arms == arms[::-1], "a block is a palindrome"
        assert {"baseline", "treatment"} <= set(arms)
    assert sum("again" in arms for arms in by_block.values()) == settings.measure.again_blocks
    assert {"sabotage", "oracle", "solo"} <= set(controlled[0])


def runs_of(settings, model=None, name="order", prompts=PROMPTS):
    return Contrast(model or toy(), settings, prompts, name, lambda: (0.0, 0.0), lambda *_: None).run().tables["runs"]


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_half_of_the_blocks_begin_with_the_baseline(name):
    runs = runs_of(config(), name=name)
    firsts = {}
    for run in runs:
        if run.arm in ("baseline", "treatment"):
            firsts.setdefault(run.block, run.arm)
    assert sorted(firsts.values()) == ["baseline"] * 3 + ["treatment"] * 3


def test_prompts_come_in_an_order_that_the_name_of_the_cell_draws():
    orders = [[run.prompt for run in runs_of(config(), name=name) if run.arm == "treatment"] for name in "aabc"]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 3
    assert len({frozenset(order) for order in orders}) == 1


@pytest.mark.parametrize(("method", "prompts"), [("jacobi", PROMPTS), ("packed", PROMPTS), ("jacobi", PROMPTS[:1])])
def test_one_prompt_is_decoded_before_anything_has_seen_it_again_and_in_the_end(method, prompts, monkeypatch):
    seen = []
    run_arm = Arms.run
    opened = Arms.__init__

    def watched(self, arm, task, *more, **named):
        seen.append([prompt.tokens for prompt in task.prompts])
        return run_arm(self, arm, task, *more, **named)

    def sampled(self, model, settings, sample, *more, **named):
        seen.append([sample])
        opened(self, model, settings, sample, *more, **named)

    monkeypatch.setattr(Arms, "run", watched)
    monkeypatch.setattr(Arms, "__init__", sampled)
    settings = config(method, streams=2)
    runs = runs_of(settings, prompts=prompts)
    cold, again, late = (run for run in runs if run.arm == "carry")
    assert [run.order for run in (cold, again, late)] == [0, 1, 2]
    assert (cold.run, again.run, late.run) == (0, 1, len(runs) - 1)
    same = next(run for run in runs if run.arm == "treatment" and run.prompt == cold.prompt)
    assert len({(run.prompt, run.seed, run.n_predict) for run in (cold, again, late, same)}) == 1
    places = [i for i, prompts_run in enumerate(seen) if tuple(prompts_run) == tuple(tokens_of(cold.prompt))]
    before = [tokens for prompts_run in seen[: places[0]] for tokens in prompts_run]
    assert places[1] == places[0] + 1
    assert before and not set(before) & set(tokens_of(cold.prompt)), "neither a probe nor a warm-up has seen it"
    between = {tuple(prompts_run) for prompts_run in seen[places[1] : places[-1]]}
    assert between - {tuple(tokens_of(cold.prompt))}, "another prompt came in between"


def tokens_of(name):
    return [prompt.tokens for part in name.split("+") for prompt in PROMPTS if prompt.id == part]


def test_contexts_count_what_is_decoded_in_them():
    """Prefills outside the window, everything else inside; a drafter's prompt and guesses apart."""
    runs = [run for run in runs_of(config("draft", draft=2, draft_model="0")) if run.n_predict == 24]
    for run in runs:
        assert (run.outside_decodes, run.outside_tokens) == (1, 6)
        assert run.begin_ns < run.start_ns < run.end_ns <= run.finish_ns
        assert run.begin_ns + run.prefill_ns + run.draft_prefill_ns == run.start_ns
    plain = [run for run in runs if run.arm in ("baseline", "again", "solo")]
    for run in plain:
        assert (run.window_decodes, run.window_tokens, run.window_outputs) == (23, 23, 23)
        assert (run.draft_prefill_ns, run.beside_outside_tokens, run.beside_window_tokens) == (0, 0, 0)
    for run in (run for run in runs if run.arm == "treatment"):
        # A perfect drafter: 7 rounds of 3 tokens and one of 2; it takes in the prompt, then one decode a guess.
        assert (run.window_decodes, run.window_tokens, run.window_outputs) == (8, 23, 23)
        assert run.beside_outside_tokens == 6
        assert run.draft_prefill_ns == 25 * MS, "six tokens in one decode of the drafter"
        assert run.beside_window_decodes == 7 * 2 + 1


def test_both_ratios_are_told_without_and_with_what_the_drafter_takes_for_the_prompt(tmp_path):
    (tmp_path / "0").write_bytes(b"")
    row = everything(judged(tmp_path, toy(), config("draft", draft=2, draft_model=str(tmp_path / "0"))))
    assert row["draft_prefill_ms"] == pytest.approx(25.0), "six tokens in one decode of the drafter"
    window = 23 / row["tok_s"]
    assert row["prompted_speedup"] == pytest.approx(row["speedup"] * window / (window + 0.025), rel=1e-6)
    plain = everything(judged(tmp_path / "plain", toy(), config("lookup")))
    assert plain["prompted_speedup"] == pytest.approx(plain["speedup"]) and plain["draft_prefill_ms"] == 0


def test_a_loop_that_takes_tokens_back_is_divergent(tmp_path):
    """Above temperature 0 the published loop says guesses as tokens, and another token at the same place later."""
    published = judged(tmp_path / "a", toy(), config(streams=2, temperature=0.7))
    honest = judged(tmp_path / "b", toy(), config(streams=2, temperature=0.7, emission="distinct"))
    assert everything(published)["lossless"] == "divergent"
    assert everything(honest)["lossless"] == "identical"
    assert voids(published) == set(), "its acceptance can still be judged"


def test_collision_is_judged_from_independent_draws(tmp_path):
    settings = config(streams=2, temperature=0.7, n_predict=60)
    settings.seed = 2
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


def test_a_text_is_decoded_once_for_all_that_is_compared_on_it(monkeypatch):
    """At temperature 0 the turns of a block say the same, and several arms are compared on it."""
    from bench.run import replay as replays

    decoded: list[tuple[int, tuple[int, ...], tuple[int, ...], replays.Shape]] = []
    real = replays.replay

    def counting(ctx, prompt, tokens, shape, beginning):
        decoded.append((id(ctx), tuple(prompt), tuple(tokens), shape))
        return real(ctx, prompt, tokens, shape)

    monkeypatch.setattr(replays, "replay", counting)
    settings = config("packed")
    settings.measure.contexts = 1
    result = Contrast(replace(toy(noise=0.02), spread=0.05), settings, PROMPTS, "order", lambda: (0.0, 0.0),
                      lambda *_: None).run()  # fmt: skip
    rows = result.facts["lossless"]
    assert sum(row["first_difference"] is not None for row in rows) > 4, "the toy must differ, or this tests nothing"
    arms = [run.arm for run in result.tables["runs"] if run.arm in {row["arm"] for row in rows}]
    answers = [row["arm"] for row in rows if row["stream"] == 0]
    assert answers == arms[: len(answers)] or sorted(answers) == sorted(arms), "the rows come in the order of the runs"
    again = [one for one in decoded if decoded.count(one) > 1]
    # The noise of the cell is measured before, on the first text.
    assert len(decoded) - len(set(decoded)) <= 2, again[:1]


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


def test_contexts_are_made_anew_and_every_run_tells_in_which_it_was(tmp_path):
    model, settings = toy(), config("packed", 2)
    settings.measure.contexts = 3
    opened = []
    plain = model.context
    model.context = lambda spec: opened.append(spec) or plain(spec)
    found = judged(tmp_path, model, settings)
    assert not any(control["severity"] == "void" for control in found.controls)
    assert len(opened) >= 9  # three arms, three times
    (cell,) = found.cells
    runs = load_cell(tmp_path / "toy" / cell["cell"]).runs
    by_block = {block: set(runs["context"][runs["block"] == block].tolist()) for block in range(6)}
    assert list(by_block.values()) == [{0}, {0}, {1}, {1}, {2}, {2}]
    assert set(runs["context"][runs["arm"] == "again"].tolist()) == {0, 1, 2}
    assert everything(found)["contexts"] == pytest.approx(3)


@pytest.mark.parametrize(("blocks", "contexts", "wanted"), [(6, 1, set()), (6, 3, {2, 4}), (5, 2, {2}), (2, 5, {1}),
                                                            (1, 3, set()), (6, 0, set())])
def test_every_set_of_contexts_has_as_many_blocks(blocks, contexts, wanted):
    assert renewed(blocks, contexts) == wanted


@pytest.mark.parametrize("method", [{"method": "lookup"}, {"method": "packed", "streams": 3}, {"streams": 3},
                                    {"method": "jacobi", "temperature": 0.8},
                                    {"streams": 2, "emission": "distinct", "rebuild": "exact"}], ids=str)  # fmt: skip
def test_answers_that_end_by_themselves_are_a_sound_cell_with_rates_of_what_was_said(tmp_path, method):
    settings = config(n_predict=60, **method)
    settings.ignore_eos = False
    findings = judged(tmp_path, toy(), settings)
    assert [row["sentence"] for row in findings.controls if row["severity"] == "void"] == []
    row = next(row for row in findings.speedup if (row["prompt_class"], row["scope"]) == ("all", "answer"))
    assert row["lossless"] == "identical" and row["ignore_eos"] is False and "ignore_eos=false" in row["short"]
    (told,) = (one for one in findings.controls if one["control"] == "length")
    assert (told["severity"], told["value"]) == ("ok", 1.0)
    lengths = re.findall(r"after ([\d.]+) tokens in the mean|baseline's after ([\d.]+)", told["sentence"])
    assert 2 <= float(lengths[0][0]) == float(lengths[1][1]) < 60
    assert row["answer_tokens"] == row["baseline_answer_tokens"] == pytest.approx(float(lengths[0][0]), abs=0.05)
    (cell,) = (load_cell(folder) for folder in tmp_path.glob("toy/*"))
    assert cell.facts["ends"] == toy().end_tokens
    last = pd.DataFrame(dict(cell.ledger)).groupby(["run", "stream"])["position"].max() + 1
    assert last.min() < 60, "some answer ends before the cap"


def test_a_reader_s_speed_is_that_of_the_time_that_his_own_answer_took(tmp_path):
    """Answers leave a batch at different times: tokens over the seconds of each, not over the longest one's."""
    settings = config("packed", streams=3, n_predict=60)
    settings.ignore_eos = False
    findings = judged(tmp_path, toy(), settings)
    (cell,) = (load_cell(folder) for folder in tmp_path.glob("toy/*"))
    runs, ledger, rates = pd.DataFrame(dict(cell.runs)), pd.DataFrame(dict(cell.ledger)), []
    for run in runs.itertuples():
        if run.arm == "treatment":
            said = ledger[(ledger.run == run.run) & (ledger["round"] >= 0)]
            waited = (said.groupby("stream")["t_ns"].max() - run.start_ns).sum() * 1e-9
            rates.append(len(said) / waited)
    row = next(row for row in findings.speedup if (row["prompt_class"], row["scope"]) == ("all", "answer"))
    assert min(rates) <= row["tok_s"] <= max(rates)
    assert row["tok_s"] < row["aggregate_tok_s"] < 3 * row["tok_s"]


def test_an_answer_that_stops_without_an_end_voids_the_cell(tmp_path, monkeypatch):
    settings = config("lookup", n_predict=60)
    settings.ignore_eos = False
    monkeypatch.setattr("pti_loop.loop.Decoder.ends", property(lambda self: {3, 5, 7}, lambda self, _: None),
                        raising=False)  # fmt: skip
    findings = judged(tmp_path, toy(), settings)
    assert any("tokens in an answer without an end" in row["sentence"] for row in findings.controls)


def test_a_chain_is_a_condition_and_a_lossless_one(tmp_path):
    settings = config("jacobi", temperature=0.8)
    settings.top_k, settings.top_p, settings.repeat_penalty = 12, 0.9, 1.4
    findings = judged(tmp_path, toy(), settings)
    assert [row["sentence"] for row in findings.controls if row["severity"] == "void"] == []
    row = next(row for row in findings.speedup if row["prompt_class"] == "all")
    assert (row["lossless"], row["top_k"], row["repeat_penalty"], row["min_p"]) == ("identical", 12, 1.4, 0.0)
    assert row["short"].endswith("top_k=12, top_p=0.9, repeat_penalty=1.4")


def test_a_verification_that_forgets_the_guesses_is_divergent(tmp_path, monkeypatch):
    """A penalty has to count the tokens of a draft before the one that is compared."""
    monkeypatch.setattr("pti_loop.loop.Decoder.behind", lambda self, text, guesses: lambda place: text)
    settings = config("twin", n_predict=60, draft=4, twin="2")
    settings.repeat_penalty, settings.presence_penalty = 1.5, 1.0
    findings = judged(tmp_path, toy(), settings)
    row = next(row for row in findings.speedup if row["prompt_class"] == "all")
    assert row["lossless"] == "divergent"
