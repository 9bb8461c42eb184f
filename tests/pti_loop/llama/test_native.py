"""llama.cpp's own drafters on real models: plain decoding's text where widths round alike, and llama.cpp's counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from bench.run.padded import Padded
from pti_loop.counted import CountedContext, CountedModel
from pti_loop.drafter import Target
from pti_loop.engine import ContextSpec, Unsupported
from pti_loop.ledger import Trace
from pti_loop.llama.model import LlamaModel
from pti_loop.loop import Decoder, Guesses
from pti_loop.method import fit
from pti_loop.methods import METHODS
from pti_loop.sampling import Sampler
from pti_loop.settings import settings_of
from pti_loop.tally import Tally
from tests.pti_loop.loops import run

TEXT = "The names before:\nanna, bert, carl, dora, emil\nThe names once more:\nanna, bert,"
CODE = "def add(a, b):\n    return a + b\n\ndef add(a, b):\n    return"


@pytest.fixture(scope="module")
def tiny() -> Iterator[LlamaModel]:
    loaded = LlamaModel(model_path(compose_points(["model=pti-tiny"])[0]), n_gpu_layers=0, load_mtp=True)
    yield loaded
    loaded.close()


@contextmanager
def padded(name: str, model: LlamaModel, **given):
    """A function that runs the method once where no row is decoded alone, and the source of its drafters."""
    method, settings = METHODS[name], settings_of(name, **given)
    ctx = Padded(model, fit(method, ContextSpec(n_ctx=300, n_seq_max=1), settings))
    source = method.source(Target(model, ctx.inner, settings, (1, 2, 3, 4)))

    def once(prompt, control: str = "none", answer=()) -> Trace:
        trace = Trace(0, ctx.clock)
        guesses = Guesses(control, [answer], model.n_vocab, model.end_tokens)
        sampler = Sampler(model.n_vocab, 0.0, 1, model.weigh)
        method.run(Decoder(ctx, sampler, trace, settings, guesses, source), [prompt])
        return trace

    try:
        yield once, source
    finally:
        if source:
            source.close()
        ctx.close()


NGRAMS = ({"type": "ngram-simple", "n": 2, "m": 6}, {"type": "ngram-map-k", "n": 2, "m": 6},
          {"type": "ngram-map-k4v", "n": 2, "m": 6}, {"type": "ngram-mod", "n": 3, "m": 6, "n_min": 1},
          {"type": "ngram-cache"}, {"type": "ngram-mod+ngram-cache", "n": 3, "m": 6, "n_min": 1})  # fmt: skip


@pytest.fixture(scope="module")
def plain(model) -> list[int]:
    with padded("autoregressive", model, n_predict=40) as (once, _):
        return once(model.tokenize(TEXT)).text()


@pytest.mark.parametrize("given", NGRAMS, ids=lambda given: given["type"])
def test_the_text_is_plain_decodings_where_no_row_is_alone(model, plain, given):
    with padded("native", model, n_predict=40, **given) as (once, _):
        trace = once(model.tokenize(TEXT))
        assert trace.text() == plain
        assert once(model.tokenize(TEXT), "sabotage", plain).text() == plain
    rounds = trace.rounds()
    assert sum(one.accepted for one in rounds) > 0, "a drafter that never guesses is lossless without merit"
    assert len(rounds) < 39
    assert len(set(plain)) > 5


def test_what_a_record_counts_is_what_llama_cpp_counts(model, plain, tmp_path):
    with padded("native", model, n_predict=40, type="ngram-cache") as (once, source):
        rounds = once(model.tokenize(TEXT)).rounds()
        # The loop tells a drafter of its last round when it is asked again, so the last one is not in its counts.
        source._alone[0].accept(rounds[-1].accepted if rounds[-1].drafted else 0, [])
        text = source._alone[0].statistics(tmp_path / "statistics.txt")
    drafted, accepted = map(int, re.search(r"#gen tokens =\s*(\d+), #acc tokens =\s*(\d+)", text).groups())
    assert (drafted, accepted) == (sum(one.drafted for one in rounds), sum(one.accepted for one in rounds))
    assert drafted > accepted > 0


@pytest.mark.parametrize("kind", ["draft-mtp", "draft-mtp+ngram-cache"])
def test_the_models_head_drafts_as_llama_cpp_has_it(tiny, kind):
    prompt = tiny.tokenize(CODE)
    wanted = run("autoregressive", tiny, prompts=[prompt], n_predict=40, n_ctx=256).text()
    trace = run("native", tiny, prompts=[prompt], n_predict=40, n_ctx=256, type=kind, draft=3, rollback="snapshots")
    assert trace.text() == wanted
    rounds = trace.rounds()
    assert sum(one.accepted for one in rounds) > 0.4 * sum(one.drafted for one in rounds) > 0


def test_the_head_accepts_as_often_as_ours_does(tiny):
    """Ours feeds the same head the same pairs: what it guesses first is the same token."""
    prompt = tiny.tokenize(CODE)
    common = {"prompts": [prompt], "n_predict": 40, "n_ctx": 256, "draft": 1, "rollback": "snapshots"}
    ours, theirs = run("mtp", tiny, **common), run("native", tiny, type="draft-mtp", **common)
    assert [one.accepted for one in theirs.rounds()] == [one.accepted for one in ours.rounds()]


def test_a_head_is_for_one_answer_and_for_a_model_that_has_one(model, tiny):
    with pytest.raises(Unsupported, match="draft-mtp has to see every decode once, and rollback=checkpoint"):
        run("native", tiny, n_predict=8, n_ctx=64, type="draft-mtp", rollback="checkpoint")
    with pytest.raises(Unsupported, match="draft-mtp is asked for one answer at a time"):
        run("packed", tiny, prompts=((1, 2), (3, 4)), streams=2, n_predict=8, n_ctx=64, drafter="native",
            type="draft-mtp", rollback="snapshots")  # fmt: skip
    with pytest.raises(Unsupported):
        run("native", model, n_predict=8, n_ctx=64, type="draft-mtp")


def test_packed_answers_draft_each_with_a_drafter_of_its_own(tiny):
    prompts = [tiny.tokenize(text) for text in (CODE, "for name in names:\n    print(name)\nfor name in names:\n")]
    alone = run("autoregressive", tiny, prompts=prompts, n_predict=24, n_ctx=256)
    packed = run("packed", tiny, prompts=prompts, streams=2, n_predict=24, n_ctx=256, drafter="native",
                 type="ngram-cache", rollback="snapshots")  # fmt: skip
    assert [packed.text(i) for i in range(2)] == [alone.text(i) for i in range(2)]
    assert sum(one.accepted for one in packed.rounds()) > 0


def test_a_context_that_counts_is_taken_for_the_one_behind_it(tiny):
    tally = Tally()
    model, settings = CountedModel(tiny, tally), settings_of("native", type="ngram-cache", rollback="snapshots")
    ctx = CountedContext(tiny.context(fit(METHODS["native"], ContextSpec(n_ctx=64, n_seq_max=1), settings)), tally)
    source = METHODS["native"].source(Target(model, ctx, settings, (1, 2, 3)))
    assert source is not None and source.facts()["types"] == ["ngram-cache"] and source.remembers
    source.close()
    ctx.close()
