"""What prompts begin with, evaluated once and restored: the same text as without it, in less time, or a reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from pti_loop.beginning import Beginning, bytes_of
from pti_loop.engine import ContextSpec, EngineError, prefill
from pti_loop.llama.model import LlamaModel
from tests.pti_loop.loops import MS, opened, toy

BEGIN = tuple((7 * place) % 46 + 4 for place in range(64))
PROMPTS = tuple((*BEGIN, *tail) for tail in ((5, 6, 7), (8, 9, 10, 11), (12, 13)))
TEXT = "The rain had stopped before noon, and in the garden behind the house the children were looking for snails. "
METHODS = [("autoregressive", {}, 1), ("packed", {"streams": 3}, 3),
           ("lookup", {"ngram": 1, "draft": 3, "rollback": "checkpoint"}, 1),
           ("stagger", {"emission": "distinct", "rebuild": "exact", "streams": 3}, 1)]  # fmt: skip


def said(trace, answers: int) -> list[list[int]]:
    return [trace.text(answer, verified_only=True) for answer in range(answers)]


def both(model, name, settings, answers, prompts, temperature: float = 0.0, depth: int = len(BEGIN), **more):
    """The trace with the beginning restored, and the one of plain evaluation."""
    found = []
    for beginning in (Beginning(prompts[0][:depth]), None):
        given = settings | more | {"sample": prompts[0], "answers": answers, "n_predict": 12, "beginning": beginning}
        with opened(name, model, **given) as once:
            found += [once(prompts[:answers], temperature) for _ in range(2)][-1:]
        assert beginning is None or not beginning.reason, beginning.reason
    return found


@pytest.mark.parametrize(("name", "settings", "answers"), METHODS)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_the_text_is_that_of_plain_evaluation_and_the_prefill_is_shorter(name, settings, answers, temperature):
    restored, plain = both(toy(), name, settings, answers, PROMPTS, temperature)
    assert said(restored, answers) == said(plain, answers)
    assert (restored.n_prompt_restored, plain.n_prompt_restored) == (answers * len(BEGIN), 0)
    assert restored.n_prompt_evaluated + restored.n_prompt_restored == plain.n_prompt_evaluated
    assert restored.restore_ns == answers * MS, "a tenth of a step each, outside the prefill"
    assert restored.prefill_ns < plain.prefill_ns / 4


def test_a_prompt_that_begins_otherwise_is_evaluated_whole():
    other = ((9, *BEGIN[1:], 5, 6), BEGIN)
    with opened("autoregressive", toy(), n_predict=8, beginning=Beginning(BEGIN)) as once:
        for prompt in other:
            assert once([prompt]).n_prompt_restored == 0
        assert once([PROMPTS[0]]).n_prompt_restored == len(BEGIN)


def test_contexts_that_are_made_alike_share_one_evaluation_and_others_do_not():
    model, beginning = toy(), Beginning(BEGIN)
    spec = ContextSpec(n_ctx=200, n_seq_max=1)
    alike = [model.context(spec), model.context(replace(spec, n_outputs=32))]
    other = model.context(replace(spec, type_k="q8_0"))
    times = []
    for ctx in (*alike, other):
        began = ctx.clock()
        beginning.prepare(ctx)
        times.append(ctx.clock() - began)
        assert ctx.length(0) == 0, "it is left empty"
    assert times[1] < times[0] / 4 and times[2] == times[0]
    told = [beginning.told(ctx) for ctx in (*alike, other)]
    assert told[0] == told[1] and all(one["bytes"] == 8 * len(BEGIN) and one["seconds"] > 0.1 for one in told)


@pytest.mark.parametrize(
    ("faults", "room", "reason"),
    [({"restore_lies": True}, None, "does not say what it said"), ({"no_states": True}, None, "is not given"),
     ({}, 8 * len(BEGIN) - 1, "0.00 GB are free")],
)  # fmt: skip
def test_what_cannot_be_restored_is_evaluated_in_every_run_and_says_why(faults, room, reason):
    model, beginning = toy(**faults), Beginning(BEGIN, lambda: room)
    with opened("autoregressive", model, n_predict=8, beginning=beginning) as once:
        trace = once([PROMPTS[0]])
    assert reason in beginning.reason and trace.n_prompt_restored == 0
    assert trace.n_prompt_evaluated == len(PROMPTS[0])
    with opened("autoregressive", toy(), n_predict=8) as once:
        assert trace.text() == once([PROMPTS[0]]).text()


def test_bytes_are_computed_before_anything_is_evaluated():
    ctx = toy().context(ContextSpec(n_ctx=200, n_seq_max=2))
    assert bytes_of(ctx, 64) == 8 * 64


def test_a_sequence_that_holds_something_takes_no_state():
    ctx = toy().context(ContextSpec(n_ctx=200, n_seq_max=1))
    prefill(ctx, BEGIN, 0)
    with pytest.raises(EngineError, match="not empty"):
        ctx.restore(0, ctx.save(0))


@pytest.fixture(scope="module")
def tiny():
    loaded = LlamaModel(model_path(compose_points(["model=pti-tiny"])[0]), n_gpu_layers=0, load_mtp=True)
    yield loaded
    loaded.close()


def deep(model, depth: int = 64) -> list[tuple[int, ...]]:
    tails = ("def median(values):", "The first thing that she saw", "Q: Why")
    common = tuple(model.tokenize(TEXT * 8))[:depth]
    return [(*common, *model.tokenize(tail)[-4:]) for tail in tails]


@pytest.mark.parametrize(("name", "settings", "answers"), METHODS)
@pytest.mark.parametrize("which", ["smollm2", "pti-tiny"])
def test_a_real_engine_says_the_same_tokens(request, which, name, settings, answers):
    """Attention alone, and a hybrid with recurrent layers; several sequences too. Pieces end where the state does."""
    model = request.getfixturevalue("model" if which == "smollm2" else "tiny")
    restored, plain = both(model, name, settings, answers, deep(model), n_ctx=160, n_batch=64)
    assert said(restored, answers) == said(plain, answers)
    assert restored.n_prompt_restored == 64 * answers and restored.restore_ns > 0


@pytest.mark.parametrize("which", ["smollm2", "pti-tiny"])
@pytest.mark.parametrize("more", [{}, {"type_k": "q8_0", "type_v": "q8_0", "flash_attn": "on"}])
def test_logits_behind_a_restored_state_are_those_behind_the_evaluated_one(request, which, more):
    model = request.getfixturevalue("model" if which == "smollm2" else "tiny")
    text = deep(model)[0]
    ctx = model.context(ContextSpec(n_ctx=160, n_seq_max=1, n_batch=64, n_ubatch=64, **more))
    beginning = Beginning(text[:64])
    beginning.prepare(ctx)
    assert not beginning.reason and beginning.told(ctx)["bytes"] > 1000
    rows = []
    for kept in (beginning, None):
        ctx.clear()
        held = kept.take_up(ctx, text, 0) if kept else 0
        prefill(ctx, text, 0, held=held)
        rows.append(ctx.logits()[0].copy())
    assert np.array_equal(*rows)
    assert beginning.told(ctx)["bytes"] <= 1.1 * bytes_of(ctx, 64) + 4096, "as it was computed, and a header"
    ctx.close()
