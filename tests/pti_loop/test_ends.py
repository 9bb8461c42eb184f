"""Answers that end by themselves, and draws behind a chain, in every method on the toy engine, against plain decoding.

Penalties read the text: a draft's position has to see the guesses before it, and no answer another's text.
"""

from __future__ import annotations

import numpy as np
import pytest

from pti_loop.chain import Chain
from pti_loop.engine import Unsupported
from pti_loop.fake import END
from pti_loop.loop import Decoder
from pti_loop.rollback import STRATEGIES
from tests.pti_loop.loops import run, toy
from tests.pti_loop.test_speculative import DRAFTERS, PROMPTS

CHAIN = Chain(top_k=12, top_p=0.95, min_p=0.02, repeat_penalty=1.5, presence_penalty=0.5, repeat_last_n=16)
STAGGERS = [("published", "none"), ("distinct", "none"), ("published", "exact"), ("distinct", "exact"),
            ("distinct", "mtp")]  # fmt: skip
LONG = 200


def ending(seed: int = 0, **faults):
    """A toy model whose answers end after some ten to a hundred tokens."""
    model = toy(**faults)
    model.seed = seed
    return model


def cut(text: list[int]) -> bool:
    """Whether the end is the last token and no other."""
    return END not in text[:-1] and (text[-1] == END or len(text) == LONG)


def both(name, model, **given):
    common = {"n_predict": LONG, "ends": True, "prompts": given.pop("prompts", PROMPTS[:1])}
    shared = {key: given.pop(key) for key in ("temperature", "chain", "seed") if key in given}
    return run("autoregressive", model, **common, **shared), run(name, model, **common, **shared, **given)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("rollback", STRATEGIES)
@pytest.mark.parametrize(("name", "settings"), DRAFTERS)
def test_every_drafter_ends_where_plain_decoding_does(name, settings, rollback, temperature):
    ended = 0
    for seed in range(4):
        model = ending(seed, no_rewind=rollback != "rewind", no_snapshots=rollback == "checkpoint", bad_head=0.4)
        plain, trace = both(name, model, temperature=temperature, rollback=rollback, **settings)
        assert trace.text(verified_only=True) == plain.text() and cut(plain.text())
        assert sum(row.accepted + 1 for row in trace.rounds()) == len(plain.text()) - 1
        assert len(trace.emits()) == len(plain.text()), "nothing is said behind the end"
        assert all(draw.drawn != END for draw in trace.draws()), "an end is compared with no guess"
        ended += plain.text()[-1] == END
    assert ended, "an answer of these has to end by itself"


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize(("emission", "rebuild"), STAGGERS)
def test_staggered_copies_end_where_plain_decoding_does(emission, rebuild, temperature):
    ended = 0
    for seed in range(4):
        plain, trace = both("stagger", ending(seed), temperature=temperature, streams=3, emission=emission,
                            rebuild=rebuild)  # fmt: skip
        assert trace.text(verified_only=True) == plain.text() and cut(plain.text())
        ended += plain.text()[-1] == END
    assert ended
    with pytest.raises(Unsupported, match=r"stop=rounds .*use method\.stop=tokens, or ignore_eos=true"):
        both("stagger", ending(), streams=3, emission=emission, rebuild=rebuild, stop="rounds")


@pytest.mark.parametrize("drafter", ["none", "jacobi", "lookup"])
def test_packed_answers_leave_the_batch_when_they_end(drafter):
    widths = set()
    for seed in range(4):
        plain, trace = both("packed", ending(seed), prompts=PROMPTS, streams=3, drafter=drafter, temperature=0.8)
        assert [trace.text(answer) for answer in range(3)] == [plain.text(answer) for answer in range(3)]
        assert len({len(plain.text(answer)) for answer in range(3)}) > 1, "they end at different times"
        widths |= {row.width for row in trace.rounds()}
    if drafter == "none":
        assert widths == {1, 2, 3}


def test_an_end_is_no_first_token_and_may_be_the_second():
    lengths = [len(run("autoregressive", ending(seed), temperature=3.0, seed=seed, n_predict=30, ends=True).text())
               for seed in range(60)]  # fmt: skip
    assert min(lengths) >= 2 and lengths.count(2)


@pytest.mark.parametrize("control", ["oracle", "sabotage"])
def test_controls_end_with_the_answer(control):
    model = ending(1)
    plain = run("autoregressive", model, n_predict=LONG, ends=True)
    trace = run("lookup", model, n_predict=LONG, ends=True, draft=3, control=control, answer=plain.text())
    assert trace.text() == plain.text()
    accepted = [draw.accepted for draw in trace.draws()]
    assert all(accepted) if control == "oracle" else not any(accepted)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize(("name", "settings"), DRAFTERS)
def test_every_drafter_draws_behind_the_chain(name, settings, temperature, ends):
    for seed in range(3):
        common = {"temperature": temperature, "seed": seed, "chain": CHAIN, "n_predict": 70, "ends": ends}
        plain = run("autoregressive", ending(seed), **common)
        assert run(name, ending(seed, bad_head=0.4), **common, **settings).text(verified_only=True) == plain.text()


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize(("emission", "rebuild"), STAGGERS)
def test_staggered_copies_draw_behind_the_chain(emission, rebuild, temperature):
    common = {"temperature": temperature, "chain": CHAIN, "n_predict": 70}
    plain = run("autoregressive", toy(), **common)
    trace = run("stagger", toy(), streams=3, emission=emission, rebuild=rebuild, **common)
    assert trace.text(verified_only=True) == plain.text()
    assert plain.text() != run("autoregressive", toy(), temperature=temperature, n_predict=70).text()


@pytest.mark.parametrize("drafter", ["none", "jacobi", "twin"])
def test_packed_answers_read_their_own_texts(drafter):
    common = {"temperature": 0.6, "chain": CHAIN, "n_predict": 50, "prompts": PROMPTS}
    plain = run("autoregressive", toy(), **common)
    own = {"twin": "2"} if drafter == "twin" else {}
    packed = run("packed", toy(), streams=3, drafter=drafter, **own, **common)
    assert [packed.text(answer) for answer in range(3)] == [plain.text(answer) for answer in range(3)]


@pytest.mark.parametrize("fault", ["no guesses", "no text", "a guess too many"])
def test_a_draft_s_position_that_does_not_see_the_guesses_before_it_says_something_else(fault, monkeypatch):
    """What a verification does that penalises by the confirmed text alone: it fails this way, and is seen."""
    faults = {"no guesses": lambda self, text, guesses: lambda place: text,
              "no text": lambda self, *_: lambda place: [],
              "a guess too many": lambda self, text, guesses: lambda place: [*text, *guesses[: place + 1]]}  # fmt: skip
    common = {"temperature": 0.0, "chain": Chain(repeat_penalty=1.6, presence_penalty=1.0), "n_predict": 90}
    plain = run("autoregressive", toy(), **common)
    assert run("twin", toy(), draft=4, twin="2", **common).text() == plain.text()
    monkeypatch.setattr(Decoder, "behind", faults[fault])
    assert run("twin", toy(), draft=4, twin="2", **common).text() != plain.text()


def test_a_coupled_draft_through_the_chain_is_accepted_more_often(monkeypatch):
    common = {"temperature": 0.9, "chain": CHAIN, "n_predict": 300, "draft": 2, "twin": "3", "draws": "coupled"}
    rate = [np.mean([draw.accepted for draw in run("twin", toy(), **common).draws()])]
    monkeypatch.setattr("pti_loop.draft.beside.speaker", lambda sampler, answer, draws: (
        lambda ctx, position, text, guesses: type(sampler)(sampler._n_vocab, 0.9, sampler.seed).draw(
            ctx.logits()[-1], answer, 0, position).token))  # fmt: skip
    rate.append(np.mean([draw.accepted for draw in run("twin", toy(), **common).draws()]))
    assert rate[0] > rate[1] + 0.05


def test_a_method_that_tells_no_text_is_refused():
    decoder = type("Bare", (), {"sampler": None})()
    from pti_loop.sampling import Sampler

    decoder.sampler = Sampler(4, 0.0, 0, chain=Chain(repeat_penalty=1.1))
    with pytest.raises(Unsupported, match="does not tell the text before its draws"):
        Decoder.draws(decoder, [(0, 0, 1)])


