"""The loops on the toy engine: exact counts, exact times, the same text as plain decoding, and faults that show."""

from __future__ import annotations

import numpy as np
import pytest

from pti_loop.engine import EngineError, Unsupported
from pti_loop.methods import METHODS
from tests.pti_loop.loops import MS, acceptance, rate, run, toy

GUESSING = [
    ("stagger", {"emission": "published", "rebuild": "none"}),
    ("stagger", {"emission": "distinct", "rebuild": "none"}),
    ("stagger", {"emission": "distinct", "rebuild": "exact"}),
    ("stagger", {"emission": "published", "rebuild": "exact"}),
    ("jacobi", {}),
    ("lookup", {"draft": 3}),
    ("lookup", {"ngram": 1, "gate": True, "adaptive": True}),
]


def test_plain_decoding_takes_one_step_a_token():
    trace = run("autoregressive", n_predict=33)
    assert len(trace.text()) == 33
    assert trace.window_ns == 32 * 10 * MS
    assert rate(trace) == pytest.approx(100.0)


@pytest.mark.parametrize(("streams", "counted", "distinct"), [(2, 159, 81), (3, 238, 82), (4, 317, 83)])
def test_published_loop_counts_what_pti_published(streams, counted, distinct):
    """At -n 80 the loop runs 79 rounds and counts 1 + 79 N tokens, of which 79 + N are different ones."""
    trace = run("stagger", streams=streams, n_predict=80, stop="rounds")
    emits = trace.emits()
    assert len(emits) == counted
    assert len({emit.position for emit in emits}) == distinct
    assert sum(r.phase == "steady" for r in trace.rounds()) == 79


@pytest.mark.parametrize(("name", "settings"), GUESSING)
@pytest.mark.parametrize("streams", [2, 3, 4, 8])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_every_method_says_what_plain_decoding_says(name, settings, streams, temperature):
    plain = run("autoregressive", temperature=temperature, n_predict=41).text()
    trace = run(name, temperature=temperature, streams=streams, n_predict=41, **settings)
    assert len(trace.text()) == 41, "n_predict is exact"
    assert trace.text(verified_only=True) == plain, "and every token of it was confirmed"


@pytest.mark.parametrize(("name", "settings"), GUESSING)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_sabotage_accepts_nothing_changes_nothing_and_costs(name, settings, temperature):
    known = run(name, temperature=temperature, streams=4, n_predict=41, **settings)
    plain = run("autoregressive", temperature=temperature, n_predict=41)
    trace = run(name, temperature=temperature, streams=4, n_predict=41, control="sabotage", answer=known.text(),
                **settings)  # fmt: skip
    assert acceptance(trace) == 0
    assert trace.text(verified_only=True) == plain.text()[: len(trace.text(verified_only=True))]
    assert rate(trace) < rate(plain)


@pytest.mark.parametrize(("name", "settings"), GUESSING)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_oracle_accepts_everything(name, settings, temperature):
    plain = run("autoregressive", temperature=temperature, n_predict=41).text()
    trace = run(name, temperature=temperature, streams=4, n_predict=41, control="oracle", answer=plain, **settings)
    assert acceptance(trace) == 1
    assert trace.text() == plain


def test_oracle_ceiling_of_jacobi_is_tokens_over_cost():
    answer = run("autoregressive", n_predict=41).text()
    trace = run("jacobi", toy(cost=0.3), streams=4, n_predict=41, control="oracle", answer=answer)
    assert rate(trace) == pytest.approx(100 * 4 / 1.9)


@pytest.mark.parametrize("streams", [2, 3, 4])
def test_exact_rebuild_costs_the_sequential_decodes(streams):
    """N tokens cost N - 1 single steps and one of width N, so it is slower than plain for every N."""
    length = 1 + 12 * streams
    trace = run("stagger", toy(cost=0.1), emission="distinct", rebuild="exact", streams=streams, n_predict=length)
    steady = [r for r in trace.rounds() if r.phase == "steady"]
    assert len(steady) == 12
    first, rest = steady[0], steady[1:]
    assert first.draft_ns == 0, "the start-up decodes made the first guesses"
    assert {r.draft_ns for r in rest} == {(streams - 1) * 10 * MS}
    assert {r.redecoded for r in rest} == {streams - 1}
    assert {r.decode_ns for r in rest} == {int(10 * MS * (1 + 0.1 * (streams - 1)))}
    assert rate(trace) < 100


def test_greedy_twins_agree_by_construction_at_every_depth():
    trace = run("stagger", streams=4, n_predict=60)
    assert acceptance(trace) == 1
    assert {draw.depth for draw in trace.draws()} == {1, 2, 3}
    assert all(np.isnan(draw.collision) for draw in trace.draws())


@pytest.mark.parametrize("temperature", [0.4, 0.7, 1.0])
def test_independent_draws_agree_with_the_collision_probability(temperature):
    """The toy's distributions are known, so the acceptance has a known mean; 4 standard errors of room."""
    accepted, expected = [], []
    for seed in range(12):
        trace = run("stagger", temperature=temperature, seed=seed, streams=2, n_predict=120)
        accepted += [draw.accepted for draw in trace.draws()]
        expected += [draw.collision for draw in trace.draws()]
    gap = np.mean(accepted) - np.mean(expected)
    assert abs(gap) < 4 * 0.5 / np.sqrt(len(accepted))
    assert 0.2 < np.mean(expected) < 0.95, "a trivial distribution would test nothing"


def test_coupled_draws_always_agree():
    trace = run("stagger", temperature=1.0, streams=4, n_predict=80, draws="coupled")
    assert acceptance(trace) == 1


def test_packed_answers_are_those_of_each_prompt_alone():
    prompts = [(1, 2, 3), (4, 5, 6, 7), (8,)]
    packed = run("packed", streams=3, prompts=prompts, n_predict=30, temperature=0.8)
    alone = run("autoregressive", prompts=prompts, n_predict=30, temperature=0.8)
    for answer in range(3):
        assert packed.text(answer) == alone.text(answer)
    assert packed.window_ns == 29 * int(16 * MS)
    assert alone.window_ns == 3 * 29 * 10 * MS
    assert alone.n_prompt_evaluated == packed.n_prompt_evaluated == 8


def test_the_published_loop_says_last_what_nothing_confirms_where_it_counts_rounds():
    """At -n 20 with 8 streams: 19 rounds confirm 20 tokens, and 7 more are said that no round came to."""
    trace = run("stagger", streams=8, n_predict=20, stop="rounds")
    source = {}
    for emit in trace.emits():
        source[emit.position] = "verified" if "verified" in (source.get(emit.position), emit.source) else emit.source
    assert [position for position, last in source.items() if last == "unverified"] == list(range(20, 27))
    assert len(trace.text()) == 27 and len(trace.text(verified_only=True)) == 20


def test_startup_rounds_are_timed_apart():
    trace = run("stagger", streams=4, n_predict=40)
    startup = [r for r in trace.rounds() if r.phase == "startup"]
    assert [r.width for r in startup] == [1, 1, 1]
    assert sum(r.total_ns for r in trace.rounds()) == trace.window_ns


@pytest.mark.parametrize("name", ["autoregressive", "packed", "jacobi", "stagger"])
def test_parts_of_a_round_and_host_time_make_the_window(name):
    prompts = [(1, 2)] * (4 if name == "packed" else 1)
    trace = run(name, toy(host_ns=1000), streams=4, prompts=prompts, n_predict=30)
    for r in trace.rounds():
        assert r.draft_ns + r.decode_ns + r.sample_ns + r.rollback_ns <= r.total_ns
    assert sum(r.total_ns for r in trace.rounds()) <= trace.window_ns


def test_jacobi_says_unsupported_when_the_memory_cannot_rewind():
    with pytest.raises(Unsupported, match="does not drop its newest tokens"):
        run("jacobi", toy(no_rewind=True), streams=4, n_predict=30)


def test_a_rollback_that_lies_changes_the_text():
    plain = run("autoregressive", n_predict=40).text()
    assert run("jacobi", toy(rollback_lies=True), streams=4, n_predict=40).text() != plain


def test_stagger_needs_no_rewind():
    plain = run("autoregressive", n_predict=40, temperature=0.7).text()
    trace = run("stagger", toy(no_rewind=True), temperature=0.7, streams=3, n_predict=40, emission="distinct")
    assert trace.text() == plain


def test_a_prompt_that_is_still_cached_is_an_error():
    model = toy(cached_prompt=True)
    from pti_loop.engine import ContextSpec
    from pti_loop.ledger import Trace
    from pti_loop.loop import Decoder
    from pti_loop.sampling import Sampler
    from pti_loop.settings import Settings

    ctx = model.context(ContextSpec(n_ctx=100, n_seq_max=1))
    decoder = Decoder(ctx, Sampler(model.n_vocab, 0.0, 1), Trace(0, ctx.clock), Settings(n_predict=4))
    METHODS["autoregressive"].run(decoder, [(1, 2, 3)])
    with pytest.raises(EngineError, match="still holds 6 tokens"):
        METHODS["autoregressive"].run(decoder, [(1, 2, 3)])


def test_a_failing_decode_is_an_error_not_a_slow_token():
    with pytest.raises(EngineError, match="returned 1"):
        run("autoregressive", toy(decode_code=1), n_predict=40)
