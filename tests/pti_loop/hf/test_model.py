"""The engine on transformers: the text of the network alone whatever the method, and the promises of the interface."""

from __future__ import annotations

import numpy as np
import pytest

from bench.synth import writer
from bench.synth.shape import order
from pti_loop.beginning import Beginning
from pti_loop.engine import ContextSpec, EngineError, Unsupported, prefill
from pti_loop.hf import load
from tests.pti_loop.hf.hf_models import END, N_VOCAB, WINDOW, write
from tests.pti_loop.loops import acceptance, run

pytestmark = pytest.mark.skipif(bool(load.missing()), reason="the extra is not installed; run `make setup EXTRA=hf`")

PROMPT = tuple((5 * i * i + 3) % N_VOCAB for i in range(9))
OTHERS = (PROMPT, PROMPT[:4], PROMPT[2:])
KINDS = ("attention", "sliding", "hybrid")
GUESSING = [("stagger", {"emission": "published"}), ("stagger", {"emission": "distinct"}),
            ("stagger", {"emission": "distinct", "rebuild": "exact"}), ("jacobi", {}),
            ("lookup", {"ngram": 1, "draft": 3})]  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    from pti_loop.hf.model import HfModel

    folder = tmp_path_factory.mktemp("hf")
    loaded = {kind: HfModel(write(kind, folder / kind, words=kind == "attention"), 0) for kind in KINDS}
    yield loaded
    for one in loaded.values():
        one.close()


def context(model, **more):
    return model.context(ContextSpec(**{"n_ctx": 64, "n_seq_max": 3} | more))


def alone(model, tokens) -> np.ndarray:
    """Logits of every position, by the network itself on the whole text, with no cache and no mask."""
    import torch

    with torch.inference_mode():
        return model.network(input_ids=torch.tensor([list(tokens)]), use_cache=False).logits[0].float().numpy()


def close_to(found: np.ndarray, expected: np.ndarray) -> bool:
    """Equal but for rounding, the masked column apart."""
    kept = [token for token in range(N_VOCAB) if token != END]
    return bool(np.abs(found[..., kept] - expected[..., kept]).max() < 1e-4 * expected[..., kept].std())


@pytest.mark.parametrize("kind", KINDS)
def test_plain_decoding_says_what_the_network_alone_says(models, kind):
    text = run("autoregressive", models[kind], prompts=[PROMPT], n_predict=24).text()
    held = list(PROMPT)
    for token in text:
        row = alone(models[kind], held)[-1]
        row[END] = -np.inf
        assert token == row.argmax()
        held.append(token)
    assert len(held) > 4 * WINDOW and len(set(text)) > 5, "a short or constant text would show nothing"


@pytest.mark.parametrize(
    ("kind", "temperature", "method"),
    [*(("attention", temperature, method) for temperature in (0.0, 0.7) for method in GUESSING),
     *(("sliding", 0.7, method) for method in GUESSING[2:4]), *(("hybrid", 0.7, method) for method in GUESSING[:3])],
)  # fmt: skip
def test_every_method_says_what_plain_decoding_says(models, kind, temperature, method):
    name, settings = method
    common = {"prompts": [PROMPT], "n_predict": 16, "temperature": temperature}
    plain = run("autoregressive", models[kind], **common).text()
    trace = run(name, models[kind], streams=3, **common, **settings)
    verified = trace.text(verified_only=True)
    assert verified == plain[: len(verified)]
    assert len(verified) >= 14 and len(trace.text()) == 16


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_packed_answers_are_those_of_each_prompt_alone(models, kind, temperature):
    common = {"prompts": OTHERS, "n_predict": 10, "temperature": temperature}
    separate = run("autoregressive", models[kind], **common)
    packed = run("packed", models[kind], streams=3, **common)
    assert [packed.text(i) for i in range(3)] == [separate.text(i) for i in range(3)]
    assert separate.text(0) != separate.text(1) != separate.text(2)


def test_controls_hold(models):
    common = {"prompts": [PROMPT], "n_predict": 16, "streams": 3}
    answer = run("autoregressive", models["attention"], prompts=[PROMPT], n_predict=20).text()
    assert acceptance(run("jacobi", models["attention"], control="oracle", answer=answer, **common)) == 1
    sabotaged = run("jacobi", models["attention"], control="sabotage", answer=answer, **common)
    assert acceptance(sabotaged) == 0
    assert sabotaged.text() == answer[:16]


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_prompt_finds_nothing_of_the_first(models, kind):
    used, fresh = context(models[kind]), context(models[kind])
    prefill(used, PROMPT, 0)
    used.copy(0, 1)
    used.clear()
    for ctx in (used, fresh):
        for sequence in range(2):
            prefill(ctx, PROMPT[3:], sequence)
    assert (used.logits() == fresh.logits()).all()
    assert used.length(0) == used.length(1) == len(PROMPT) - 3


@pytest.mark.parametrize("kind", ["attention", "sliding"])
def test_rewinding_restores_the_state(models, kind):
    ctx = context(models[kind])
    prefill(ctx, PROMPT, 0)
    before = ctx.logits().copy()
    ctx.decode([50, 51, 52], range(9, 12), [0] * 3, None)
    assert not close_to(ctx.logits()[:1], before), "the rejected tokens say something else"
    assert ctx.rewind(0, 8)
    assert ctx.length(0) == 8
    ctx.decode([PROMPT[8]], [8], [0], None)
    assert close_to(ctx.logits(), before)


def test_a_recurrent_state_says_that_it_cannot_rewind(models):
    model, ctx = models["hybrid"], context(models["hybrid"])
    prefill(ctx, PROMPT, 0)
    assert (model.hybrid, model.can_rewind, models["sliding"].can_rewind) == (True, False, True)
    assert not ctx.rewind(0, 7)
    assert ctx.length(0) == 9, "nothing has changed"
    assert ctx.rewind(0, 9), "there is nothing to forget"
    with pytest.raises(Unsupported, match="does not drop its newest tokens"):
        run("jacobi", model, streams=3, prompts=[PROMPT], n_predict=8)
    with pytest.raises(EngineError, match=r"not \[2, 1\]"):
        ctx.decode([1, 1, 1], [9, 10, 0], [0, 0, 1], None)
    assert ctx.length(0) == 9


@pytest.mark.parametrize("kind", KINDS)
def test_copies_go_their_own_ways(models, kind):
    ctx = context(models[kind])
    prefill(ctx, PROMPT, 2)
    ctx.copy(2, 0)
    ctx.decode([20, 30], [9, 9], [0, 2], None)
    ctx.decode([40, 40], [10, 10], [2, 0], None)
    assert close_to(ctx.logits(), np.stack([alone(models[kind], (*PROMPT, token, 40))[-1] for token in (30, 20)]))
    ctx.drop(2)
    assert (ctx.length(0), ctx.length(2)) == (11, 0)
    with pytest.raises(EngineError, match="sequence 0 is not empty"):
        ctx.copy(2, 0)


@pytest.mark.parametrize("kind", ["attention", "sliding"])
def test_rows_in_any_order_and_of_any_widths_are_one_forward_pass(models, kind):
    """Three sequences with other lengths bring 1, 3 and 2 tokens, mixed up; four rows are asked for."""
    model, ctx, passes = models[kind], context(models[kind]), []
    texts = [[*prompt, 11, 12, 13] for prompt in OTHERS]
    for sequence, prompt in enumerate(OTHERS):
        prefill(ctx, prompt, sequence)
    hook = model.network.register_forward_hook(lambda *_: passes.append(1))
    rows = [(1, 0), (2, 0), (1, 1), (0, 0), (1, 2), (2, 1)]
    places = [len(OTHERS[sequence]) + i for sequence, i in rows]
    tokens = [texts[sequence][at] for (sequence, _), at in zip(rows, places, strict=True)]
    ctx.decode(tokens, places, [sequence for sequence, _ in rows], [1, 2, 3, 4])
    hook.remove()
    assert len(passes) == 1
    expected = [alone(model, texts[rows[i][0]][: places[i] + 1])[-1] for i in (1, 2, 3, 4)]
    assert close_to(ctx.logits(), np.stack(expected))


def test_end_tokens_are_masked_and_a_second_look_costs_nothing(models):
    ctx = context(models["attention"], n_batch=4)
    prefill(ctx, PROMPT, 0)
    rows = ctx.logits()
    assert (rows.shape, rows.dtype) == ((1, N_VOCAB), np.float32)
    assert list(np.flatnonzero(np.isneginf(rows[0]))) == models["attention"].end_tokens == [END]
    assert ctx.logits() is rows


def test_the_device_can_choose_the_token(models):
    texts = [run("packed", models["attention"], streams=2, prompts=OTHERS[:2], n_predict=8, sampler=sampler).text(1)
             for sampler in ("host", "backend")]  # fmt: skip
    assert texts[0] == texts[1]
    ctx = context(models["attention"], sampler="backend")
    prefill(ctx, PROMPT, 0)
    with pytest.raises(EngineError, match="samples on the backend"):
        ctx.logits()


def test_what_is_not_there_is_said(models):
    ctx = context(models["attention"])
    with pytest.raises(EngineError, match="left no logits"):
        ctx.logits()
    with pytest.raises(EngineError, match="hidden states are kept"):
        ctx.hidden()
    ctx.close()
    with pytest.raises(EngineError, match="this context is closed"):
        ctx.decode([1], [0], [0], None)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [(([1], [3], [0]), "holds 0 tokens, the batch puts one at 3"), (([1], [0], [5]), "beyond n_seq_max 3"),
     (([1, 1], [0, 0], [0, 0]), "holds 1 tokens"), (([N_VOCAB], [0], [0]), "not in the vocabulary of 97"),
     (([1] * 65, range(65), [0] * 65), "full at 64 tokens"), (([1] * 70, range(70), [0] * 70), "n_batch 69"),
     (([], [], []), "is empty")],
)  # fmt: skip
def test_a_wrong_batch_is_an_error_and_changes_nothing(models, rows, sentence):
    ctx = context(models["attention"], n_batch=69)
    with pytest.raises(EngineError, match=sentence):
        ctx.decode(*rows)
    assert ctx.length(0) == 0


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [({"type_k": "q8_0"}, "own type"), ({"kv_unified": True}, "is llama.cpp's"), ({"flash_attn": "off"}, "llama.cpp's"),
     ({"n_ctx": 1 << 50}, "torch makes no context")],
)  # fmt: skip
def test_what_is_only_llama_cpps_is_refused(models, spec, sentence):
    with pytest.raises(EngineError, match=sentence):
        context(models["attention"], **spec)


def test_what_does_not_load_is_a_sentence(tmp_path):
    from pti_loop.hf.model import HfModel

    (tmp_path / "empty").mkdir()
    (tmp_path / "x.gguf").write_bytes(b"GGUF nonsense")
    for path, sentence in ((tmp_path / "empty", "no config.json"), (tmp_path / "none.gguf", "neither a model folder"),
                           (tmp_path / "x.gguf", "x.gguf")):  # fmt: skip
        with pytest.raises(EngineError, match=sentence):
            HfModel(path)
    with pytest.raises(EngineError, match="n_gpu_layers=5"):
        HfModel(tmp_path, n_gpu_layers=5)
    with pytest.raises(Unsupported, match=r"does not support an attention .*; use model.engine=llama"):
        HfModel(write("bloom", tmp_path / "bloom"), 0)
    writer.write(order("dense-mini"), tmp_path / "dense.gguf")
    (tmp_path / "other.gguf").write_bytes((tmp_path / "dense.gguf").read_bytes().replace(b"llama", b"plamo"))
    with pytest.raises(Unsupported, match="architecture plamo"):
        HfModel(tmp_path / "other.gguf", 0)


def test_a_mask_that_hides_nothing_is_found_out_before_anything_is_decoded(tmp_path, monkeypatch):
    from pti_loop.hf.cache import Placement
    from pti_loop.hf.model import HfModel

    mask = Placement.mask
    monkeypatch.setattr(Placement, "mask", lambda self, window=None: mask(self, window) | True)
    with pytest.raises(Unsupported, match="something else in a batch of sequences than alone"):
        HfModel(write("attention", tmp_path), 0)


def test_words_come_from_the_folders_tokenizer(models):
    assert models["attention"].tokenize("w5 w7 w2") == [5, 7, 2]
    assert models["attention"].detokenize([5, 7]) == "w5 w7"
    with pytest.raises(EngineError, match="has no tokenizer"):
        models["hybrid"].tokenize("w5")


def test_facts_and_bytes(models):
    model, ctx = models["hybrid"], context(models["hybrid"], threads=1)
    bytes_, facts = model.byte_facts(), ctx.facts()
    assert bytes_["kv_bytes_per_token"] == 2 * 2 * 8 * 4, "keys and values of the one attention layer, in float32"
    assert bytes_["tensor_bytes"] == 4 * model.facts()["n_params"]
    assert bytes_["tensor_bytes"] - bytes_["step_bytes"] == 4 * N_VOCAB * 32, "the embedding table is not read whole"
    assert facts["kv_bytes"] == 3 * 64 * bytes_["kv_bytes_per_token"]
    assert facts["state_bytes"] == 3 * bytes_["state_bytes_per_sequence"] > 0
    assert facts["build"].startswith("transformers-") and (facts["n_ctx_seq"], facts["type_k"]) == (64, "f32")
    assert model.facts()["memory"] == "hybrid"
    ctx.close()
    ctx.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_state_goes_on_as_the_evaluated_one(models, kind):
    """In another sequence too; what the slabs held before is gone."""
    begin = tuple((7 * place + 1) % N_VOCAB for place in range(16))
    ctx = context(models[kind])
    beginning = Beginning(begin)
    beginning.prepare(ctx)
    assert not beginning.reason and beginning.told(ctx)["bytes"] > 0
    for sequence in (0, 2):
        ctx.clear()
        text = (*begin, *PROMPT)
        assert prefill(ctx, text, sequence, held=beginning.take_up(ctx, text, sequence)) == len(PROMPT)
        assert close_to(ctx.logits()[0], alone(models[kind], text)[-1])
    with pytest.raises(EngineError, match="not empty"):
        beginning.take_up(ctx, text, 2)
    ctx.close()
