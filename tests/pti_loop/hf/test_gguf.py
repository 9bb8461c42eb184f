"""The engine on transformers beside llama.cpp on one GGUF file: the same words, masks and nearly logits."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from bench.run.prepared import prepare
from bench.run.worker import measure_cell
from bench.synth import writer
from bench.synth.shape import order
from pti_loop.engine import ContextSpec, prefill
from pti_loop.hf import load
from pti_loop.llama.library import library
from pti_loop.llama.model import LlamaModel
from tests.pti_loop.loops import run

pytestmark = pytest.mark.skipif(bool(load.missing()), reason="the extra is not installed; run `make setup EXTRA=hf`")

TEXTS = ("The key to faster LLM inference is", "Once upon a time there was a bridge that", "def median(values):")
LENGTH = 20
SHORT = ["prompts=short", "measure=quick", "measure.classes=[prose]", "n_predict=8", "engine.n_ctx=128",
         "engine.threads=1", "profile=false"]  # fmt: skip


def pair_noise(left: np.ndarray, right: np.ndarray) -> float:
    """Largest move of a difference between two of the four most likely tokens' logits."""
    top = np.argpartition(left, -4)[-4:]
    moved = left[top] - right[top]
    return float(moved.max() - moved.min())


def widened(path: Path, target: Path) -> Path:
    """The same weights as float32, by llama.cpp's own quantiser."""
    settings = library().llama_model_quantize_default_params()
    settings.ftype, settings.allow_requantize = 0, True
    assert library().llama_model_quantize(str(path).encode(), str(target).encode(), ctypes.byref(settings)) == 0
    return target


@pytest.mark.parametrize("preset", ["dense-mini", "hybrid-mini"])
def test_float32_weights_give_llama_cpps_logits(tmp_path, preset):
    """Both engines on one file of float32 weights: what is left is the order of sums."""
    from pti_loop.hf.model import HfModel

    writer.write(order(preset, ["format=F16"]), tmp_path / "f16.gguf")
    path = widened(tmp_path / "f16.gguf", tmp_path / "f32.gguf")
    theirs, ours = LlamaModel(path, n_gpu_layers=0), HfModel(path, 0)
    tokens, found = [(37 * i + 11) % 1000 for i in range(24)], []
    for model, spec in ((theirs, {"type_k": "f32", "type_v": "f32", "flash_attn": "off"}), (ours, {})):
        ctx = model.context(ContextSpec(n_ctx=256, n_seq_max=1, n_outputs=24, **spec))
        ctx.decode(tokens, range(24), [0] * 24, None)
        found.append(ctx.logits().copy())
        ctx.close()
    kept = np.isfinite(found[0])
    assert (kept == np.isfinite(found[1])).all(), "they mask the same tokens"
    assert np.abs(found[0][kept] - found[1][kept]).max() < 1e-3 * found[0][kept].std()
    theirs.close()


def test_a_trained_hybrid_says_what_llama_cpp_says():
    """With weights of 8 bits: the text of llama.cpp's own arithmetic on a model whose state is recurrent."""
    from pti_loop.hf.model import HfModel

    path = model_path(compose_points(["model=pti-tiny"])[0])
    theirs, ours = LlamaModel(path, n_gpu_layers=0), HfModel(path, 0)
    prompt = theirs.tokenize("class TestQueue(unittest.TestCase):\n    def test_put(self):\n")
    plain = run("autoregressive", theirs, prompts=[prompt], n_predict=16, n_ctx=256).text()
    staggered = run("stagger", ours, prompts=[prompt], n_predict=16, streams=3, emission="distinct").text()
    assert staggered == run("autoregressive", ours, prompts=[prompt], n_predict=16).text()
    assert staggered[:12] == plain[:12] and len(set(plain)) > 5
    assert (ours.hybrid, ours.can_rewind, ours.end_tokens) == (True, False, theirs.end_tokens)
    theirs.close()


def test_a_cell_is_measured_as_with_the_other_engine(tmp_path):
    """The text of a method is the baseline's own, and the bytes are those of the weights as they were loaded."""
    writer.write(order("dense-mini"), tmp_path / "dense.gguf")
    (cell,), *_ = prepare(["model=gguf", f"model.path={tmp_path / 'dense.gguf'}", "model.engine=hf", "method=lookup",
                           "method.ngram=1", *SHORT, f"results={tmp_path}"])  # fmt: skip
    job = {"cell": cell.id, "kind": cell.kind, "config": cell.config, "model_path": str(cell.model_path), "peers": {},
           "files": {}}  # fmt: skip
    facts, tables = measure_cell(job)
    assert {row["arm"] for row in facts["lossless"]} >= {"treatment", "sabotage", "oracle"}
    assert all(row["first_difference"] is None for row in facts["lossless"])
    model = facts["model"]
    assert (model["quantization"], model["architecture"]) == ("Q8_0 as F32", "llama")
    assert model["tensor_bytes"] == 4 * model["n_params"] > model["step_bytes"] > model["file_bytes"]
    assert facts["engine"]["treatment"]["type_k"] == "f32"
    assert {run.arm for run in tables["runs"]} >= {"baseline", "treatment", "again", "sabotage", "oracle"}


def test_smollm2_agrees_with_llama_cpp_or_was_undecided(model, smollm2):
    """llama.cpp's answers, and what transformers would say at each of their positions.

    llama.cpp multiplies quantised weights by activations of 8 bits, transformers widened ones by float32. How far that
    moves the logits is measured where both say the same; elsewhere neither may be further from the other's token.
    """
    from pti_loop.hf.model import HfModel

    other, noise, rows = HfModel(smollm2, 0), [], []
    for text in TEXTS:
        prompt = model.tokenize(text)
        assert other.tokenize(text) == prompt
        answer, left = _greedy(model, prompt, LENGTH)
        ctx = other.context(ContextSpec(n_ctx=64, n_seq_max=1))
        whole = [*prompt, *answer[:-1]]
        ctx.decode(whole, range(len(whole)), [0] * len(whole), range(len(prompt) - 1, len(whole)))
        for position, (ours, theirs) in enumerate(zip(ctx.logits(), left, strict=True)):
            a, b = int(theirs.argmax()), int(ours.argmax())
            if a == b:
                noise.append(pair_noise(theirs, ours))
            else:
                rows.append({"text": text, "position": position, "gap_llama": float(theirs[a] - theirs[b]),
                             "gap_hf": float(ours[b] - ours[a])})  # fmt: skip
        ctx.close()
    shown = [f"logits differ by up to {max(noise):.3f} where both say the same, {len(noise)} positions", *rows]
    print(*shown, sep="\n")
    assert max(noise) < 1.0, "more than rounding"
    assert all(max(row["gap_llama"], row["gap_hf"]) < max(noise) for row in rows), shown
    assert len(rows) <= 0.1 * (len(rows) + len(noise)), shown
    first = min((row["position"] for row in rows if row["text"] == TEXTS[1]), default=6)
    prompt = model.tokenize(TEXTS[1])
    said, expected = _greedy(other, prompt, first + 1)[0], _greedy(model, prompt, first + 1)[0]
    assert said[:first] == expected[:first], "decoded token by token, they part where they were undecided"
    other.close()


def _greedy(model, prompt, length) -> tuple[list[int], list[np.ndarray]]:
    """Token ids, and the logits that each was chosen from."""
    ctx = model.context(ContextSpec(n_ctx=256, n_seq_max=1))
    prefill(ctx, prompt, 0)
    said, rows = [], []
    for position in range(length):
        rows.append(ctx.logits()[0].copy())
        said.append(int(rows[-1].argmax()))
        ctx.decode(said[-1:], [len(prompt) + position], [0], None)
    ctx.close()
    return said, rows
