"""The context call: what a loop says in steps is what it says at once, and the rates are those of its window."""

from __future__ import annotations

import math

import pytest

from pti_loop.engine import Unsupported
from pti_loop.parameters import ParameterError
from pti_loop.pti_context import PtiContext, RequestError
from tests.pti_loop.loops import opened, rate, run, toy

PROMPTS = ((1, 2, 3, 4), (9, 8, 7), (5, 5, 6, 7, 2))
CASES = [
    ("stagger", 4, {}),
    ("stagger", 3, {"emission": "distinct", "rebuild": "exact"}),
    ("stagger", 2, {"stop": "rounds"}),
    ("packed", 3, {}),
    ("packed", 2, {"drafter": "lookup", "draft": 3}),
    ("lookup", 1, {"draft": 4}),
    ("jacobi", 1, {}),
    ("autoregressive", 1, {}),
]


def steps(pti: PtiContext, prompts, n_predict: int) -> list:
    said = pti.prefill(prompts, n_predict)
    while not pti.done:
        said += pti.step()
    return said


def rows(trace) -> list[tuple]:
    return [(one.stream, one.position, one.token, one.round, one.source) for one in trace.emits()]


@pytest.mark.parametrize(("name", "streams", "parameters"), CASES)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_steps_say_what_the_loop_says_at_once(name, streams, parameters, temperature):
    prompts = PROMPTS[: streams if name == "packed" else 1]
    whole = run(name, prompts=prompts, temperature=temperature, streams=streams, n_predict=20, **parameters)
    with PtiContext(toy(), streams, name, n_ctx=400, temperature=temperature, **parameters) as pti:
        said = steps(pti, prompts, 20)
        assert rows(pti.trace) == rows(whole)
        assert [one[:3] for one in said] == [row[:3] for row in rows(whole)]
        assert [pti.tokens(answer) for answer in range(len(prompts))] == [
            whole.text(answer, verified_only=True)[:20] for answer in range(len(prompts))
        ]
        rates = pti.rates()
    assert rates.aggregate_tok_s == pytest.approx(rate(whole))
    assert rates.counted == len(rows(whole)) - len(prompts)
    assert rates.distinct == len({row[:2] for row in rows(whole)}) - len(prompts)
    assert sum(one.again for one in said) == rates.counted - rates.distinct
    assert rates.rounds == len(whole.rounds())


def test_the_published_loop_says_most_tokens_four_times_and_the_rates_tell():
    with PtiContext(toy(), 4, n_ctx=400, stop="rounds") as pti:
        steps(pti, PROMPTS[:1], 80)
        rates = pti.rates()
    assert (rates.counted, rates.distinct) == (316, 82)  # 317 and 83 with the first token, which no rate has
    assert rates.counted_tok_s / rates.aggregate_tok_s == pytest.approx(316 / 82)
    assert rates.each == (rates.aggregate_tok_s,)
    assert rates.accepted == rates.verified == 237


def test_a_round_of_independent_answers_is_one_decode_of_all_of_them():
    with PtiContext(toy(), 3, "packed", n_ctx=400) as pti:
        steps(pti, PROMPTS, 12)
        tally, rates = pti.trace.tally, pti.rates()
    assert (tally.inside.decodes, tally.inside.tokens) == (11, 33) and rates.rounds == 11
    assert len(rates.each) == 3
    assert sum(rates.each) == pytest.approx(rates.aggregate_tok_s)
    assert rates.answer_tok_s == pytest.approx(rates.aggregate_tok_s / 3)


def test_what_the_caller_does_between_steps_is_in_no_rate():
    model, slow = toy(), toy()
    with PtiContext(model, 2, "packed", n_ctx=400) as pti, PtiContext(slow, 2, "packed", n_ctx=400) as other:
        steps(pti, PROMPTS[:2], 10)
        other.prefill(PROMPTS[:2], 10)
        while not other.done:
            other.step()
            slow.now_ns += 7_000_000_000
        assert other.rates() == pti.rates()


def test_stopped_in_the_middle_it_has_the_rates_so_far():
    with PtiContext(toy(), 4, n_ctx=400) as pti:
        assert math.isnan(pti.rates().aggregate_tok_s)
        pti.prefill(PROMPTS[:1], 40)
        for _ in range(5):
            pti.step()
        pti.stop()
        rates, tokens = pti.rates(), pti.tokens()
        assert pti.done and pti.step() == []
        assert rates.distinct >= 5 and 5 <= len(tokens) < 40
        assert pti.prefill(PROMPTS[1:2], 5)[0].position == 0, "and it can begin again"
        steps(pti, PROMPTS[1:2], 5)
        assert len(pti.tokens()) == 5


def test_plain_decoding_takes_prompts_in_turn_with_a_window_each():
    whole = run("autoregressive", prompts=PROMPTS, n_predict=9)
    with PtiContext(toy(), 1, "autoregressive", n_ctx=400) as pti:
        steps(pti, PROMPTS, 9)
        rates = pti.rates()
    assert rates.aggregate_tok_s == pytest.approx(rate(whole))
    assert rates.each == pytest.approx([rates.aggregate_tok_s] * 3)


@pytest.mark.parametrize(
    ("streams", "method", "parameters", "said"),
    [
        (9, "stagger", {}, "stagger takes 1 to 8 streams"),
        (0, "stagger", {}, "0 streams"),
        (2, "lookup", {}, "lookup decodes one stream"),
        (257, "packed", {}, "packed takes 1 to 256 streams"),
        (4, "staggered", {}, "there is no method 'staggered'"),
        (4, "stagger", {"draft": 3}, "has no parameter 'draft'"),
        (4, "stagger", {"emission": "all"}, "emission=all is not a choice"),
    ],
)
def test_what_a_context_is_refused_for(streams, method, parameters, said):
    with pytest.raises((RequestError, ParameterError), match=said):
        PtiContext(toy(), streams, method, n_ctx=100, **parameters)


def test_a_round_that_is_wider_than_a_batch_is_unsupported():
    with pytest.raises(Unsupported, match="decodes 256 tokens"):
        PtiContext(toy(), 256, "packed", n_ctx=100)


@pytest.mark.parametrize(
    ("prompts", "n_predict", "said"),
    [
        ((), 10, "0 prompts"),
        (PROMPTS, 10, "3 prompts, and method stagger decodes 1"),
        (((),), 10, "a prompt is empty"),
        (PROMPTS[:1], 1, "n_predict is 1"),
        (([1] * 95,), 10, "need 109 tokens of context, and a stream holds 100"),
    ],
)
def test_what_a_prefill_is_refused_for(prompts, n_predict, said):
    with PtiContext(toy(), 4, n_ctx=100) as pti, pytest.raises(RequestError, match=said):
        pti.prefill(prompts, n_predict)


@pytest.mark.parametrize(("name", "streams", "parameters"), [CASES[0], CASES[1], ("packed", 2, {}), CASES[5]])
def test_on_a_real_model_the_text_is_plain_decodings(model, name, streams, parameters):
    """SmolLM2, against the loop of the harness and against plain decoding."""
    texts = ("The key to faster LLM inference is", "One, two, three, one, two,")
    prompts = [model.tokenize(text) for text in texts[: streams if name == "packed" else 1]]
    with opened("autoregressive", model, n_ctx=128) as once:
        plain = once(prompts)
    with PtiContext(model, streams, name, n_ctx=128, **parameters) as pti:
        steps(pti, prompts, 16)
        for answer in range(len(prompts)):
            assert pti.tokens(answer) == plain.text(answer)[:16]
        found = {"rollback": pti.settings.rollback} if pti.rollback else {}
    with opened(name, model, n_ctx=128, streams=streams, n_predict=16, answers=len(prompts), **parameters,
                **found) as once:
        assert rows(once(prompts)) == rows(pti.trace)
