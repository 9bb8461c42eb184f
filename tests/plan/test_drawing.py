"""Settings of draws, ends and templates in a sweep: checked, and in the id where they change something."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan.cells import cells
from bench.plan.compose import compose_points
from bench.plan.manual import manual
from bench.plan.model_files import model_path
from bench.records.drawing import CHAIN, ENDS
from bench.run.worker import config_of

BASE = ["method=lookup", "prompts=short", "profile=false"]


def one(*overrides: str):
    configs = compose_points([*BASE, *overrides])
    (cell,) = cells(configs, Path("r"), "m", "b", {model_path(config): "ab" * 32 for config in configs})
    return cell


@pytest.mark.parametrize(
    "given", ["top_k=40", "top_p=0.9", "min_p=0.05", "repeat_penalty=1.1", "frequency_penalty=0.5",
              "presence_penalty=0.5", "ignore_eos=false", "prompts.template=model"],
)  # fmt: skip
def test_a_setting_is_another_cell_and_its_usual_value_is_not(given):
    usual, other = one("temperature=0.7"), one("temperature=0.7", given)
    key = given.partition("=")[0]
    assert other.id != usual.id
    assert key.rpartition(".")[2] not in usual.config and "template" not in usual.config["prompts"]
    value = CHAIN.get(key, True if key == ENDS else "none")
    assert one("temperature=0.7", f"{key}={str(value).lower()}").id == usual.id
    again = config_of(other.config)
    assert one("temperature=0.7", given).config["prompts"] == other.config["prompts"]
    owner = again.prompts if key.startswith("prompts") else again
    assert getattr(owner, key.rpartition(".")[2]) != value
    assert given.replace("prompts.template", "prompt_template") in other.label


def test_cuts_change_nothing_at_temperature_0_and_a_window_nothing_without_a_penalty():
    assert one("top_k=40", "top_p=0.5", "min_p=0.3").id == one().id
    assert one("repeat_last_n=8").id == one().id
    assert one("repeat_penalty=1.2", "repeat_last_n=0", "temperature=0.7").id == one("temperature=0.7").id
    assert len({one("repeat_penalty=1.2", f"repeat_last_n={last}").id for last in (-1, 8, 64)}) == 3


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["top_p=0"], r"top_p=0.0 is no such value: it is above 0 and at most 1"),
        (["top_p=1.5"], "at most 1"), (["min_p=1"], "below 1"), (["top_k=-1"], "top_k=-1 is below 0"),
        (["repeat_penalty=0"], "above 0"), (["repeat_penalty=nan"], "repeat_penalty=nan is no such value"),
        (["presence_penalty=inf"], "a number of logits"), (["repeat_last_n=-2"], "below -1"),
        (["prompts.template=chatml"], r"prompts.template=chatml is not a choice"),
        (["engine.sampler=backend", "repeat_penalty=1.1"], "use engine.sampler=host"),
        (["engine.sampler=backend", "ignore_eos=false"], "ignore_eos=false changes what is drawn"),
        (["measure.chunk=4", "ignore_eos=false"], "answers end at different times; set measure.chunk=0"),
        (["engine.server=llama-server", "treatment.engine.server='llama-server -fa on'", "method=autoregressive",
          "measure.texts=2"], "nothing that a server can be asked for here"),
        (["engine.server=llama-server", "treatment.engine.server='llama-server -fa on'", "method=autoregressive",
          "temperature=0.7", "measure.distribution=9"], "tells neither its random numbers nor all probabilities"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_a_sentence(given, sentence):
    with pytest.raises(UserError, match=sentence):
        compose_points([*(word for word in BASE if word != "method=lookup"), *given])


def test_the_manual_knows_them():
    told = manual(["top_p"]) + manual(["ignore_eos"]) + manual(["prompts.template"])
    assert all(words in told for words in ("1 is all", "lets an answer end by itself", "chat template"))
