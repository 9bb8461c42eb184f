"""The loops on a model whose memory is recurrent: the text of plain decoding, whatever guesses and whatever forgets."""

from __future__ import annotations

from functools import cache

import pytest

from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from pti_loop.counted import CountedContext, CountedModel
from pti_loop.drafter import Target
from pti_loop.engine import ContextSpec, EngineError, prefill
from pti_loop.fake import FakeModel
from pti_loop.ledger import Trace
from pti_loop.llama.model import LlamaModel
from pti_loop.loop import Decoder
from pti_loop.method import fit
from pti_loop.methods import METHODS
from pti_loop.rollback import STRATEGIES
from pti_loop.sampling import Sampler
from pti_loop.settings import settings_of
from pti_loop.state_probe import probe
from pti_loop.tally import Tally
from tests.pti_loop.loops import acceptance, opened, run

PROMPTS = ("class TestQueue(unittest.TestCase):\n    def test_put(self):\n", "for name in names:\n    if ",
           "def read(self, size=-1):\n")  # fmt: skip


@pytest.fixture(scope="module")
def tiny():
    loaded = LlamaModel(model_path(compose_points(["model=pti-tiny"])[0]), n_gpu_layers=0, load_mtp=True)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def plain(tiny, prompts):
    """Text of plain decoding by temperature and prompt, each decoded once."""
    return cache(lambda temperature, number: run(
        "autoregressive", tiny, prompts=[prompts[number]], n_predict=20, temperature=temperature, n_ctx=256
    ).text())  # fmt: skip


@pytest.fixture(scope="module")
def prompts(tiny):
    return [tuple(tiny.tokenize(text)) for text in PROMPTS]


@pytest.mark.parametrize(
    "settings",
    [{"emission": "published"}, {"emission": "distinct"}, {"emission": "distinct", "rebuild": "exact"}],
)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_stagger_says_what_plain_decoding_says(tiny, prompts, settings, temperature):
    common = {"prompts": prompts[:1], "n_predict": 24, "temperature": temperature, "n_ctx": 256}
    plain = run("autoregressive", tiny, **common).text()
    trace = run("stagger", tiny, streams=4, **common, **settings)
    verified = trace.text(verified_only=True)
    assert verified == plain[: len(verified)]
    assert len(verified) >= 24 - 3
    assert len(set(plain)) > 3, "a text of one token would be the same whatever went wrong"


@pytest.mark.parametrize("unified", [False, True])
def test_packed_answers_are_those_of_each_prompt_alone(tiny, prompts, unified):
    alone = run("autoregressive", tiny, prompts=prompts, n_predict=24, n_ctx=256)
    packed = run("packed", tiny, streams=3, prompts=prompts, n_predict=24, n_ctx=256, kv_unified=unified)
    assert [packed.text(i) for i in range(3)] == [alone.text(i) for i in range(3)]
    assert alone.text(0) != alone.text(1) != alone.text(2)


def test_controls_hold(tiny, prompts):
    common = {"prompts": prompts[:1], "n_predict": 16, "n_ctx": 256, "streams": 3, "rebuild": "exact"}
    answer = run("autoregressive", tiny, prompts=prompts[:1], n_predict=20, n_ctx=256).text()
    assert acceptance(run("stagger", tiny, control="oracle", answer=answer, **common)) == 1
    sabotaged = run("stagger", tiny, control="sabotage", answer=answer, **common)
    assert acceptance(sabotaged) == 0
    verified = sabotaged.text(verified_only=True)
    assert verified == answer[: len(verified)]


TEMPERATURES = (0.0, 0.3, 0.7, 1.0)
DRAFTERS = [
    ("jacobi", {"window": 3}), ("lookup", {"ngram": 1, "draft": 4}), ("mtp", {"draft": 1}), ("mtp", {"draft": 3}),
    ("lookup_mtp", {"ngram": 2, "draft": 4}), ("twin", {"twin": "q4_0", "draft": 2}),
    ("stagger", {"streams": 3, "rebuild": "mtp", "emission": "distinct"}),
]  # fmt: skip


@pytest.mark.parametrize("rollback", ["snapshots", "checkpoint"])
@pytest.mark.parametrize(("name", "settings"), DRAFTERS)
def test_guesses_change_nothing(tiny, prompts, plain, name, settings, rollback):
    """At every temperature, and in one context after the other answers' states."""
    own = {} if name == "stagger" else {"rollback": rollback}  # copies are all that a stagger needs
    with opened(name, tiny, n_predict=20, n_ctx=256, sample=prompts[0], **own, **settings) as once:
        for temperature in TEMPERATURES:
            for number, prompt in enumerate(prompts[:2]):
                assert once([prompt], temperature).text() == plain(temperature, number), (temperature, number)


@pytest.mark.parametrize("rollback", ["snapshots", "checkpoint"])
@pytest.mark.parametrize("drafter", ["mtp", "lookup"])
def test_packed_answers_with_guesses_are_those_of_each_prompt_alone(tiny, prompts, drafter, rollback):
    common = {"n_predict": 20, "temperature": 0.7, "n_ctx": 256, "prompts": prompts}
    alone = run("autoregressive", tiny, **common)
    packed = run("packed", tiny, streams=3, drafter=drafter, draft=2, rollback=rollback, **common)
    assert [packed.text(i) for i in range(3)] == [alone.text(i) for i in range(3)]


def test_two_prompts_after_each_other_are_two_fresh_contexts(tiny, prompts):
    """What one answer leaves behind in a context, states and snapshots too, must not reach the next."""
    settings = {"draft": 3, "n_predict": 16, "n_ctx": 256, "rollback": "snapshots"}
    with opened("mtp", tiny, sample=prompts[0], **settings) as once:
        texts = [once([prompt], 0.7).text() for prompt in [*prompts, prompts[0]]]
    fresh = [run("mtp", tiny, prompts=[prompt], temperature=0.7, **settings).text() for prompt in prompts]
    assert texts == [*fresh, fresh[0]]


def test_the_head_drafts_and_is_often_right(tiny, prompts):
    trace = run("mtp", tiny, prompts=prompts[:1], n_predict=40, n_ctx=256, draft=1, rollback="snapshots")
    assert acceptance(trace) > 0.5


def test_rollback_is_found_by_trying(tiny, prompts):
    """Without snapshots the memory refuses; with them it restores; copies always do."""
    found = {one.strategy: one for one in probe(tiny, ContextSpec(256, 1), prompts[0], 3, tuple(STRATEGIES))}
    assert [found[name].passed for name in STRATEGIES] == [False, True, True]
    assert "does not drop its newest tokens" in found["rewind"].reason


def test_a_small_ubatch_leaves_the_copy(tiny, prompts):
    """llama.cpp aborts the process on snapshots that do not fit what it computes at once; a checkpoint fits."""
    spec = ContextSpec(256, 1, n_ubatch=8)
    found = {one.strategy: one for one in probe(tiny, spec, prompts[0], 7, tuple(STRATEGIES))}
    assert [found[name].passed for name in STRATEGIES] == [False, False, True]
    assert "7 snapshots of a recurrent state need engine.n_ubatch=9 or more, and it is 8" in found["snapshots"].reason
    roomy = probe(tiny, ContextSpec(256, 1, n_ubatch=9), prompts[0], 7, ["snapshots"])
    assert roomy[0].passed, roomy[0].reason


def test_more_rows_of_logits_than_there_is_room_for_are_an_error(tiny):
    ctx = tiny.context(ContextSpec(n_ctx=256, n_seq_max=1, n_outputs=4))
    with pytest.raises(EngineError, match="asks for 5 rows of logits, and its context was made for n_outputs 4"):
        ctx.decode([5] * 5, range(5), [0] * 5, None)
    ctx.decode([5] * 5, range(5), [0] * 5, [4])
    ctx.close()


def test_a_drafter_beside_is_counted_and_its_prompt_is_timed(tiny, prompts):
    """What the contexts count is what the loop says of itself: prefill outside, rounds inside, the head's beside."""
    tally = Tally()
    settings = settings_of("mtp", n_predict=20, draft=1, rollback="snapshots")
    ctx = CountedContext(tiny.context(fit(METHODS["mtp"], ContextSpec(256, 1), settings)), tally)
    source = METHODS["mtp"].source(Target(CountedModel(tiny, tally), ctx, settings, prompts[0]))
    try:
        tally.reset()
        trace = Trace(0, ctx.clock, tally)
        sampler = Sampler(tiny.n_vocab, 0.0, 1, tiny.weigh)
        METHODS["mtp"].run(Decoder(ctx, sampler, trace, settings, source=source), prompts[:1])
    finally:
        source.close()
        ctx.close()
    assert (tally.outside.tokens, tally.beside_outside.tokens) == (len(prompts[0]),) * 2
    rounds = trace.rounds()
    assert (tally.inside.decodes, tally.inside.tokens) == (len(rounds), sum(r.width for r in rounds))
    assert tally.beside_inside.decodes == sum(r.drafted > 0 for r in rounds)
    assert trace.draft_prefill_ns > 0


def test_a_model_loaded_without_its_head_has_none(tiny, prompts):
    bare = LlamaModel(tiny.path, n_gpu_layers=0)
    try:
        with pytest.raises(EngineError, match="was loaded without its nextn head"):
            run("mtp", bare, prompts=prompts[:1], n_predict=8, n_ctx=256)
    finally:
        bare.close()


def test_a_head_beside_another_engines_context_is_refused(tiny):
    spec = ContextSpec(n_ctx=16, n_seq_max=1, hidden=True)
    with pytest.raises(EngineError, match="needs one of its contexts, not a FakeContext"):
        tiny.head(FakeModel(lambda width: width).context(spec), spec)


def test_a_copied_sequence_goes_on_as_its_source(tiny, prompts):
    ctx = tiny.context(ContextSpec(n_ctx=256, n_seq_max=2))
    prefill(ctx, prompts[0], 0)
    ctx.copy(0, 1)
    at = len(prompts[0])
    ctx.decode([7, 7], [at, at], [0, 1], None)
    first, second = ctx.logits()
    assert (first.argmax(), ctx.length(0)) == (second.argmax(), ctx.length(1))
    ctx.decode([8, 9], [at + 1, at + 1], [0, 1], None)
    first, second = ctx.logits()[:, 1:]
    assert abs(first - second).max() > 0.1, "from here on they are two sequences"
    ctx.close()
