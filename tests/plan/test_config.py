"""Overrides to configurations: the grammar, the nearest name for what is unknown, and every shipped YAML."""

from __future__ import annotations

import pytest
import yaml

from bench.errors import UserError
from bench.plan import config as config_module
from bench.plan.compose import compose_points
from bench.plan.config import CONFIGS
from bench.plan.settings import CHOICES, KEYS, LEAST, Config, MeasureConfig


def test_commas_sweep_without_a_flag():
    assert [point.streams for point in compose_points(["streams=1,2,3,4"])] == [1, 2, 3, 4]


def test_groups_sweep_too_and_combine():
    points = compose_points(["method=stagger,packed", "temperature=0,0.3,0.7"])
    assert [(p.method.name, p.temperature) for p in points] == [
        (name, t) for name in ("stagger", "packed") for t in (0.0, 0.3, 0.7)
    ]


def test_a_quoted_comma_is_one_value():
    points = compose_points(["model=gguf", "model.path='a, b'"])
    assert [p.model.path for p in points] == ["a, b"]


@pytest.mark.parametrize("plus", ["", "+"])
def test_an_experiment_is_a_union_of_sweeps_and_what_is_typed_wins(plus):
    points = compose_points([f"{plus}experiment=pti"])
    assert {p.method.name for p in points} == {"stagger", "packed", "jacobi"}
    assert len({str(p) for p in points}) == len(points)
    narrowed = compose_points([f"{plus}experiment=pti", "streams=2", "n_predict=9"])
    assert {p.streams for p in narrowed} == {2}
    assert {p.n_predict for p in narrowed} == {9}
    assert len(narrowed) < len(points), "points that became equal are one"


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("temprature=0", "unknown key 'temprature'; did you mean 'temperature'"),
        ("method.emision=published", "method=stagger has no parameter 'emision'; did you mean 'emission'"),
        ("measure.stepwidths=3", "did you mean 'measure.step_widths'"),
        ("method=stager", "did you mean 'stagger'"),
        ("model=smollm2", "did you mean 'smollm2-135m'"),
        ("experiment=ptx", "did you mean 'pti'"),
        ("method.emission=publshed", "did you mean 'published'"),
        ("engine.type_k=q8", "did you mean 'q8_0'"),
        ("+streams=4", "the key exists"),
        ("streams=abc", "streams=abc: Value 'abc'"),
        ("streams", "cannot be read"),
        ("streams=0", "streams=0 is below 1"),
        ("streams=9", "stagger takes 1 to 8"),
        ("temperature=-0.1", "temperature=-0.1 is below 0"),
        ("temperature=inf", "temperature=inf is no temperature"),
        ('prompts.items=[{id: a, class: "x\u2028y", text: y}]', "a prompt's class is 'x"),
        ('prompts.items=[{id: "", class: x, text: y}]', "a prompt's id is ''"),
        ("temperature=nan", "temperature=nan is no temperature"),
        ("n_predict=1", "n_predict=1 is below 2"),
        ("n_predict=600", "set engine.n_ctx="),
        ("engine.threads=-1", "engine.threads=-1 is below 0"),
        ("measure.step_passes=1", "measure.step_passes=1 is below 2"),
        ("measure.classes=prose", "measure.classes=prose: a list is wanted; write measure.classes=[prose]"),
        ("machine=../elsewhere", "machine=../elsewhere is no name for a folder"),
        ("machine=a/b", "is no name for a folder"),
        ("machine=.hidden", "is no name for a folder"),
        ("machine=reference", "is no name for a folder"),
        ("peers.widths=[]", "peers.widths=[] are no widths of a decode; write each once"),
        ("peers.widths=[0,2]", "peers.widths=[0, 2] are no widths"),
        ("peers.widths=[2,1,2]", "peers.widths=[2, 1, 2] are no widths"),
        ("engine.n_batch=3", "engine.n_batch=3 does not hold a token of each of streams=4"),
    ],
)
def test_a_bad_override_is_one_sentence_with_the_way_out(override, sentence):
    with pytest.raises(UserError) as caught:
        compose_points([override])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_backend_sampling_is_greedy_only():
    with pytest.raises(UserError, match="greedy only"):
        compose_points(["engine.sampler=backend", "temperature=0.5"])


@pytest.mark.parametrize("group", ["model", "prompts", "measure", "experiment"])
def test_every_shipped_yaml_composes(group):
    files = sorted((CONFIGS / group).glob("*.yaml"))
    assert files
    for file in files:
        assert compose_points([f"{group}={file.stem}"])


def test_defaults_have_one_home():
    (point,) = compose_points([])
    assert point.measure == MeasureConfig()
    plain = Config()
    assert all(getattr(point, name) == getattr(plain, name) for name in ("streams", "temperature", "n_predict", "seed"))
    assert yaml.safe_load((CONFIGS / "measure" / "default.yaml").read_text()) == {}
    assert list(yaml.safe_load((CONFIGS / "config.yaml").read_text())) == ["defaults"]


def test_every_choice_and_every_least_value_is_a_key():
    assert set(CHOICES) | set(LEAST) <= set(KEYS)


def test_a_machine_s_name_may_have_what_names_have():
    for name in ("mi50-lab.2", "reference-box", "x", None):
        config_module.check(Config(machine=name))


@pytest.mark.parametrize(
    ("overrides", "said"),
    [(["counters=nsight"], "counters=nsight is not a choice"),
     (["counters=ncu", "model.engine=hf"], "counters=ncu counts llama.cpp's kernels"),
     (["counters=ncu", "measure.counted_widths=[1,1]"], r"measure.counted_widths=\[1, 1\] are no widths"),
     (["counters=ncu", "measure.counted_widths=[1024]"], "does not fit engine.n_batch=512"),
     (["counters=ncu", "engine.build=stock,other"], "counts the kernels of one build")],
)  # fmt: skip
def test_counters_that_cannot_be(overrides, said):
    with pytest.raises(UserError, match=said):
        compose_points(overrides)


def test_the_large_models_campaign_takes_any_model_and_keeps_its_order():
    points = compose_points(["experiment=gpu", "model=gguf", "model.path=/models/a.gguf"])
    assert {point.model.path for point in points} == {"/models/a.gguf"}
    assert not any(point.measure.sharp for point in points), "F16 weights beside these fit nowhere"
    first = [(point.method.name, point.streams, point.treatment.engine.build) for point in points[:5]]
    assert first == [("packed", 4, None), ("stagger", 4, None), ("stagger", 4, None), ("autoregressive", 4, "packed"),
                     ("packed", 4, "packed")]  # fmt: skip
    assert [point.counters for point in points].index("auto") == 5
    own = compose_points(["experiment=gpu"])
    assert {point.model.path for point in own if point.counters != "none"} == {"qwen3.6-27b-8-layers-Q6_K.gguf"}
    fewer = [point.model.path for point in own if point.peers.llama_bench is None]
    assert "qwen3.6-27b-Q8_0.gguf" in fewer and len(fewer) < len(own), "programs run beside a few lines alone"
