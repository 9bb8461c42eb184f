"""The choice of the engine: what is refused before anything runs, what a cell's id and record make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cli import main
from bench.errors import UserError
from bench.host import memory
from bench.plan.cells import cells
from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from bench.run import engines
from bench.run.prepared import check_models, prepare
from bench.synth import writer
from bench.synth.shape import order
from pti_loop.gguf import file as gguf_file
from pti_loop.hf import load

HF = "model.engine=hf"
SHORT = ["prompts=short", "measure=quick", "measure.classes=[prose]", "n_predict=8", "engine.n_ctx=128",
         "engine.threads=1", "profile=false"]  # fmt: skip
installed = pytest.mark.skipif(bool(load.missing()), reason="the extra is not installed; run `make setup EXTRA=hf`")


@pytest.fixture
def dense(tmp_path):
    path = tmp_path / "dense.gguf"
    writer.write(order("dense-mini"), path)
    return ["model=gguf", f"model.path={path}", f"results={tmp_path / 'res'}", *SHORT]


def test_without_the_extra_it_is_one_line_and_code_2(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(load, "missing", lambda: ["torch", "accelerate"])
    assert main(["sweep", HF, f"results={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert said == "error: model.engine=hf needs torch, accelerate, not installed here; run `make setup EXTRA=hf`\n"
    engines.engine("llama").check_installed()


@pytest.mark.parametrize(
    ("word", "sentence"),
    [("model.engine=hff", "did you mean 'hf'"), ("peers.llama_bench=/x", "shows nothing about the loop")],
)
def test_what_the_other_engine_does_not_have_is_refused(word, sentence):
    with pytest.raises(UserError, match=sentence):
        compose_points([HF, word])


def test_a_cell_of_another_engine_is_another_cell_and_says_so():
    def plan(build: str, *words: str):
        configs = compose_points(["model=gguf", "model.path=/models/a.gguf", *SHORT, *words])
        return cells(configs, Path("results"), "box", build, {model_path(config): "w" for config in configs})

    (plain,), (other,) = plan("0.3.36"), plan("transformers-5", HF)
    assert plain.id != other.id, "the build is a part of the id, and each engine has its own"
    assert (plain.engine, other.engine) == ("llama", "hf")
    assert "(transformers)" in other.label and "(transformers)" not in plain.label


def test_weights_in_float32_have_to_fit_beside_the_caches(dense, monkeypatch):
    (config,) = compose_points([*dense, HF, "streams=2"])
    file = gguf_file.read(model_path(config))
    need = 4 * (128 * file.kv_bytes_per_token("f32", "f32")) + 4 * file.n_params
    monkeypatch.setattr(memory, "usable_memory", lambda: need)
    monkeypatch.setattr(engines, "offloads", lambda config: False)
    check_models([config])
    monkeypatch.setattr(memory, "usable_memory", lambda: need - 1)
    with pytest.raises(UserError, match="GB of weights in float32"):
        check_models([config])


@installed
def test_one_sweep_takes_both_engines_and_each_cell_says_whose_it_is(dense):
    planned, _, environments = prepare([*dense, "method=lookup", "model.engine=llama,hf"])
    assert [cell.engine for cell in planned] == ["llama", "hf"]
    builds = [environments[f"{name} stock"]["engine"]["build"] for name in ("hf", "llama")]
    assert builds[0].startswith("transformers-") and "-torch-" in builds[0] and builds[0] != builds[1]
    packages = {name: set(found["packages"]) for name, found in environments.items()}
    assert packages["hf stock"] - packages["llama stock"] == set(load.NEEDS)
