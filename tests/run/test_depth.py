"""Cells behind much text, on the toy engine and through the judge: it is evaluated once, as the record says, or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.judge import judge
from bench.run.arms import Arms, Prompt
from bench.run.contrast import Contrast
from bench.run.prompt_depth import each_behind
from bench.run.tasks import unlike
from pti_loop.fake import FakeModel, Faults
from tests.run.test_contrast import MS, PROMPTS, config, toy
from tests.run.test_trial import checks, on_trial, planned, stored

DEPTH = 96


def deep(settings, model=None, prompts=tuple(PROMPTS), **faults):
    """The contrast of these settings behind `DEPTH` tokens."""
    settings.depth = DEPTH
    behind = each_behind(list(prompts), DEPTH)
    name = planned(Path(), settings).id
    return Contrast(model or toy(**faults), settings, behind, name, lambda: (2000.0, 50.0), lambda *_: None)


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    settings = on_trial(type_k="q8_0")
    return stored(tmp_path_factory.mktemp("deep"), settings, deep(settings).run())


def test_a_trial_behind_much_text_restores_it_in_every_run(cell):
    findings = judge([cell])
    assert not checks(findings), checks(findings)
    assert set(cell.runs["n_prompt_restored"].tolist()) == {DEPTH}
    evaluated = cell.runs["n_prompt_evaluated"] + cell.runs["n_prompt_restored"]
    assert (evaluated == cell.runs["n_prompt"]).all()
    row = next(row for row in findings.trials if row.prompt_class == "all")
    assert row.depth == DEPTH and row.depth_s == row.baseline_depth_s > 0.1
    assert row.prefill_speedup == pytest.approx(1.0, rel=0.01)
    told = cell.facts["beginning"]
    assert told["restored"] and told["tokens"] == DEPTH
    assert told["arms"]["baseline"] == told["arms"]["again"] != {}
    assert next(one for one in findings.controls if one.control == "prefill").sentence.endswith("which were restored")


@pytest.mark.parametrize("method", ["stagger", "packed", "lookup"])
def test_methods_restore_it_too_and_say_what_they_said(tmp_path, method):
    settings = config(method, 3, n_predict=12)
    result = deep(settings).run()
    plain = deep(config(method, 3, n_predict=12), no_states=True).run()
    for both in zip(result.tables["ledger"], plain.tables["ledger"], strict=True):
        left, right = (replace(row, t_ns=0) for row in both)
        assert left == right
    cell = stored(tmp_path, settings, result)
    assert not checks(judge([cell])), checks(judge([cell]))
    assert cell.runs["n_prompt_restored"].min() >= DEPTH


@pytest.mark.parametrize("faults", [{"no_states": True}, {"restore_lies": True}])
def test_an_engine_that_restores_nothing_evaluates_as_before_and_the_record_says_why(tmp_path, faults):
    settings = on_trial(type_k="q8_0")
    cell = stored(tmp_path, settings, deep(settings, **faults).run())
    findings = judge([cell])
    assert not checks(findings), checks(findings)
    assert cell.facts["beginning"]["reason"] and not cell.facts["beginning"]["restored"]
    assert set(cell.runs["n_prompt_restored"].tolist()) == {0}


def test_a_head_that_sees_every_row_has_the_prompt_evaluated(tmp_path):
    settings = config("mtp", 1, n_predict=12)
    cell = stored(tmp_path, settings, deep(settings).run())
    assert "every row" in cell.facts["beginning"]["reason"]
    assert not checks(judge([cell])), checks(judge([cell]))


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [(lambda cell: cell.runs["n_prompt_restored"].__setitem__(slice(0, 1), 0), "were to be"),
     (lambda cell: cell.facts["beginning"].update(restored=False), "were to be"),
     (lambda cell: cell.facts["beginning"]["arms"].update(treatment={}), "in the context of the treatment"),
     (lambda cell: cell.runs["restore_ns"].__setitem__(slice(0, 1), 0), "in no time"),
     (lambda cell: cell.facts["beginning"].update(tokens=DEPTH - 1), "evaluated once by facts.json")],
)  # fmt: skip
def test_records_that_contradict_themselves_are_void(cell, edit, sentence):
    changed = replace(cell, runs={name: column.copy() for name, column in cell.runs.items()},
                      facts=cell.facts | {"beginning": {**cell.facts["beginning"],
                                                        "arms": dict(cell.facts["beginning"]["arms"])}})  # fmt: skip
    edit(changed)
    assert sentence in " ".join(checks(judge([changed])).values())


def test_what_is_decoded_a_run_is_what_comes_behind(cell):
    """The contexts counted: a run that decoded the whole text again would be void."""
    outside = cell.runs["outside_tokens"]
    assert (outside == cell.runs["n_prompt"] - DEPTH).all()


def test_a_text_that_no_run_is_about_begins_like_all_of_them():
    prompt = Prompt("a", "b", (1, 2, 3, 4, 5, 6))
    assert unlike(prompt).tokens == (1, 6, 5, 4, 3, 2)
    assert unlike(prompt, 3).tokens == (1, 2, 3, 6, 5, 4)


def test_one_prompt_alone_is_warmed_up_behind_the_same_text():
    settings = on_trial(type_k="q8_0")
    model = toy()
    contrast = deep(settings, model, PROMPTS[:1])
    began = model.now_ns
    result = contrast.run()
    whole = 10 * MS * (1 + 0.3 * (DEPTH - 1))
    assert model.now_ns - began < len(result.tables["runs"]) * whole, "no run evaluates the text"


def test_arms_of_one_side_evaluate_where_the_other_side_has_to():
    settings = on_trial(build="native")
    settings.depth = DEPTH
    text = each_behind(list(PROMPTS), DEPTH)[0].tokens
    arms = Arms(FakeModel(step_ns=lambda w: MS * w, faults=Faults()), settings, text)
    assert arms.beginnings["restored"]
    arms.evaluate_beginnings("the other side cannot")
    assert arms.beginnings == {"tokens": DEPTH, "restored": False, "reason": "the other side cannot",
                               "arms": {"baseline": {}, "again": {}, "treatment": {}}}  # fmt: skip
    arms.close()


