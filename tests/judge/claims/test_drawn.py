"""How tokens are drawn and prompts are asked, as conditions of a claim: rows that differ in it say nothing about it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.judge.claims.conditions import differing
from bench.judge.claims.names import Names
from bench.judge.claims.rows import matching
from bench.judge.claims.sheet import load_sheet
from bench.records.drawing import USUAL, drawing, drawn_words

OTHER = {"top_k": 40, "top_p": 0.9, "min_p": 0.1, "repeat_penalty": 1.1, "frequency_penalty": 0.1,
         "presence_penalty": 0.2, "repeat_last_n": 8, "ignore_eos": False, "prompt_template": "model"}  # fmt: skip


def claim(tmp_path, scope: str = "", conditions: str = ""):
    text = f"""- id: a.b
  says: It is twice as fast.
  source: {{document: d, date: 2026-01-01}}
  metric: speedup
  scope: {{method: lookup, temperature: 0.7, per: answer{scope}}}
  published: 2.0
  unit: x
  conditions: {{{conditions}}}
  evidence: measured
  author_status: {{state: standing}}
  rule: {{kind: records, test: absolute}}
"""
    (tmp_path / "s.yaml").write_text(text)
    return load_sheet(tmp_path / "s.yaml")[0]


def rows(**other):
    common = {"method": "lookup", "temperature": 0.7, "prompt_class": "all", "scope": "answer", "machine": "m"}
    return SimpleNamespace(speedup=[common | USUAL, common | USUAL | other])


def test_every_condition_has_a_value_that_is_not_the_usual_one():
    assert OTHER.keys() == USUAL.keys() and all(OTHER[name] != USUAL[name] for name in USUAL)


@pytest.mark.parametrize("name", OTHER)
def test_a_claim_that_is_silent_is_about_the_usual_and_one_that_is_not_about_its_own(tmp_path, name):
    found = rows(**{name: OTHER[name]})
    assert matching(claim(tmp_path), found, Names()) == found.speedup[:1]
    value = str(OTHER[name]).lower()
    assert matching(claim(tmp_path, scope=f", {name}: {value}"), found, Names()) == found.speedup[1:]


@pytest.mark.parametrize("name", OTHER)
def test_a_condition_that_differs_is_listed(tmp_path, name):
    made, found = claim(tmp_path, conditions=f"{name}: {str(OTHER[name]).lower()}"), rows(**{name: OTHER[name]})
    assert len(matching(made, found, Names())) == 2
    (told,) = differing(made, found.speedup[0], Names())
    assert told.startswith(f"{name} (claim: {OTHER[name]}, here: ")
    assert differing(made, found.speedup[1], Names()) == []


def test_a_record_tells_what_is_not_usual():
    assert drawing({}) == dict(USUAL) and drawn_words({}) == ""
    stored = {"top_p": 0.9, "ignore_eos": False, "prompts": {"template": "model"}}
    assert drawn_words(stored) == "top_p=0.9, ignore_eos=false, prompt_template=model"
