"""What the treatment differs in: one thing, in the words of an override, and part of the cell's id."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan import treatment
from bench.plan.cells import cells
from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from bench.plan.settings import EngineConfig, TreatedEngineConfig
from bench.records.identity import cell_id

NAMES = {"stock": "b+0", "native": "b+1", "fork": "b+2"}


def planned(*overrides: str, builds=NAMES):
    configs = compose_points(list(overrides))
    weights = {model_path(config): "w" for config in configs}
    return cells(configs, Path("/results"), "box", "b+0", weights, builds)


def test_every_setting_of_the_engine_can_be_on_trial() -> None:
    own = {one.name for one in fields(EngineConfig)}
    assert {one.name for one in fields(TreatedEngineConfig)} == own - {"n_ctx", "kept"}, "what both share"


def test_two_builds_are_one_contrast_of_plain_decoding() -> None:
    (cell,) = planned("engine.build=stock,native")
    assert (cell.kind, cell.config["method"]["name"]) == ("trial", "autoregressive")
    assert cell.builds == {"treatment": "native"}
    assert cell.config["treatment"] == {"engine": {"build": "b+1"}, "declaration": {
        "key": "build", "was": "stock", "became": "native", "words": "build native"}}  # fmt: skip
    assert cell.label.endswith("build native against stock")


def test_every_further_build_is_on_trial_against_the_first() -> None:
    found = planned("engine.build=fork,stock,native")
    assert [cell.builds for cell in found] == [{"baseline": "fork"}, {"baseline": "fork", "treatment": "native"}]
    assert [cell.config["treatment"]["engine"]["build"] for cell in found] == ["b+0", "b+1"]


def test_a_build_with_a_method_is_said_to_be_both() -> None:
    (cell,) = planned("engine.build=stock,native", "method=packed", "streams=2", "profile=false")
    assert "packed x2" in cell.label and "build native against stock" in cell.label


def test_one_build_for_both_arms_is_no_trial() -> None:
    (cell,) = planned("engine.build=native", "profile=false")
    assert cell.kind == "contrast" and cell.builds == dict.fromkeys(("baseline", "treatment"), "native")
    assert "build" not in cell.config["engine"] and "treatment" not in cell.config


def test_a_build_goes_by_its_files_and_not_by_where_they_lie() -> None:
    ids = [planned("engine.build=stock,native", builds={"native": name})[0].id for name in ("b+1", "b+1", "b+9")]
    assert ids[0] == ids[1] != ids[2]
    (cell,) = planned("engine.build=stock,/home/me/native/build/bin", builds={"/home/me/native/build/bin": "b+1"})
    assert cell.id == ids[0] and cell.config["treatment"]["declaration"]["words"] == "build native"
    assert "/home" not in str(cell.config)


def test_a_setting_changes_the_id_and_its_words_do_not() -> None:
    (plain,) = planned("method=autoregressive", "profile=false")
    (tried,) = planned("treatment.engine.type_k=q8_0")
    assert plain.id != tried.id and tried.config["engine"]["type_k"] == "f16"
    told = dict(tried.config, treatment=tried.config["treatment"] | {"declaration": {}})
    assert cell_id(told, "b+0") == tried.id


def test_what_is_added_later_changes_no_id_at_its_usual_value() -> None:
    (cell,) = planned("method=autoregressive", "profile=false")
    assert not {"split_mode", "main_gpu", "offload_kqv", "build"} & set(cell.config["engine"])
    assert "depth" not in cell.config and "treatment" not in cell.config
    (deep,) = planned("method=autoregressive", "profile=false", "depth=4096", "engine.split_mode=row")
    assert deep.config["depth"] == 4096 and deep.config["engine"]["split_mode"] == "row" and deep.id != cell.id


@pytest.mark.parametrize(("overrides", "sentence"), [
    (["treatment.engine.type_k=q8_0", "treatment.engine.threads=1", "engine.threads=2"],
     "treatment.engine.threads=1 and treatment.engine.type_k=q8_0 are 2 differences"),
    (["treatment.engine.type_k=q8_0", "treatment.engine.type_v=q4_0"], "are 2 differences"),
    (["engine.build=stock,native", "treatment.engine.flash_attn=off"], "are 2 differences"),
    (["treatment.engine.type_k=q8_0", "method=packed", "streams=2"],
     "method=packed and treatment.engine.type_k=q8_0 are two differences"),
    (["treatment.engine.type_k=q9_0"], "the treatment: engine.type_k=q9_0 is not a choice"),
    (["treatment.engine.typek=q8_0"], "did you mean 'treatment.engine.type_k'"),
    (["engine.build=stock,native", "temperature=0.7", "measure.distribution=100"], "measure.distribution"),
])  # fmt: skip
def test_more_than_one_difference_and_bad_values_are_named(overrides, sentence) -> None:
    with pytest.raises(UserError) as error:
        compose_points(overrides)
    assert sentence in str(error.value)


def test_a_cache_of_one_format_is_one_difference() -> None:
    (config,) = compose_points(["treatment.engine.type_k=q8_0", "treatment.engine.type_v=q8_0"])
    found = treatment.difference(config)
    assert found and (found.key, found.was, found.became) == ("type_k, type_v", "f16", "q8_0")
    assert treatment.treated(config).engine.type_v == "q8_0" and not treatment.is_apart(config)


def test_what_is_as_the_baseline_has_it_is_no_difference() -> None:
    (config,) = compose_points(["treatment.engine.type_k=f16", "method=packed", "streams=2"])
    assert treatment.difference(config) is None


@pytest.mark.parametrize("key", ["n_gpu_layers=0", "split_mode=row", "main_gpu=1", "build=native"])
def test_what_a_model_is_loaded_with_takes_two_processes(key: str) -> None:
    (config,) = compose_points([f"treatment.engine.{key}"])
    assert treatment.is_apart(config)


def test_how_a_model_lies_on_several_gpus_is_a_setting_and_can_be_on_trial():
    """Shares are written as llama-bench has them, so that a comma sweeps."""
    (config,) = compose_points(["engine.tensor_split=3/1", "engine.op_offload=false", "method=lookup"])
    assert (config.engine.tensor_split, config.engine.op_offload) == ("3/1", False)
    for given, words in (("tensor_split=3/1", "tensor_split=3/1"), ("op_offload=false", "op_offload=false"),
                         ("split_mode=row", "split_mode=row"), ("main_gpu=1", "main_gpu=1")):  # fmt: skip
        (config,) = compose_points([f"treatment.engine.{given}"])
        found = treatment.difference(config)
        assert found is not None and found.words == words
        assert treatment.is_apart(config) == (not given.startswith("op_offload"))
    assert len(compose_points(["treatment.engine.tensor_split=3/1,1/1"])) == 2
    assert treatment.told_engine(vars(config.engine)).keys().isdisjoint({"tensor_split", "op_offload"}), "no id changes"


@pytest.mark.parametrize("given", ["3:1", "0/0", "a", "/", "-1/2", "1/" * 16 + "1"])
def test_what_is_no_share_of_a_gpu_is_a_sentence(given):
    with pytest.raises(UserError, match=r"is no shares of GPUs; write a number for each of at most 16"):
        compose_points([f"engine.tensor_split='{given}'"])
