"""Every drafter and rollback on the toy engine: the text of plain decoding, exact counts, what each decode holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pti_loop import loop
from pti_loop.draft.head_probe import pairing
from pti_loop.draft.lookup import Lookup
from pti_loop.draft.lookup_mtp import LookupMtp
from pti_loop.draft.mtp import Mtp
from pti_loop.engine import ContextSpec, Unsupported
from pti_loop.fake import FakeHead
from pti_loop.fake_memory import whole
from pti_loop.loop import Guesses
from pti_loop.parameters import drafters, resolve
from pti_loop.rollback import STRATEGIES
from pti_loop.sampling import Sampler
from pti_loop.speculative import AGAIN
from tests.pti_loop.loops import MS, acceptance, rate, run, toy

DRAFTERS = [
    ("jacobi", {"streams": 4}), ("lookup", {"draft": 3}), ("draft", {"draft": 3, "draft_model": "7"}),
    ("draft", {"draft": 3, "draft_model": "7", "draws": "greedy"}), ("twin", {"draft": 4, "twin": "1"}),
    ("twin", {"draft": 1, "twin": "2", "draws": "coupled"}), ("adapter", {"draft": 2, "adapter": "9"}),
    ("mtp", {"draft": 1}), ("mtp", {"draft": 3, "draws": "coupled"}), ("lookup_mtp", {"draft": 5, "head_draft": 2}),
]  # fmt: skip
PROMPTS = ((1, 2, 3, 4), (9, 8, 7), (5, 5, 6, 5, 5, 6, 5))


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("rollback", STRATEGIES)
@pytest.mark.parametrize(("name", "settings"), DRAFTERS)
def test_every_drafter_says_what_plain_decoding_says(name, settings, rollback, temperature):
    model = toy(no_rewind=rollback != "rewind", no_snapshots=rollback == "checkpoint", bad_head=0.4)
    plain = run("autoregressive", model, temperature=temperature, n_predict=60)
    trace = run(name, model, temperature=temperature, n_predict=60, rollback=rollback, **settings)
    assert trace.text(verified_only=True) == plain.text()
    rounds = trace.rounds()
    assert sum(r.accepted + 1 for r in rounds) == 59, "a round confirms what it accepts and one draw"
    assert {emit.source for emit in trace.emits()} == {"prefill", "verified"}


@pytest.mark.parametrize("rollback", STRATEGIES)
@pytest.mark.parametrize("drafter", [name for name in drafters() if name != "native"])  # which no toy engine has
def test_packed_answers_have_guesses_of_their_own(drafter, rollback):
    model = toy(no_rewind=rollback != "rewind", no_snapshots=rollback == "checkpoint", bad_head=0.3)
    common = {"prompts": PROMPTS, "n_predict": 40, "temperature": 0.5}
    alone = run("autoregressive", model, **common)
    given = {"draft": 3, "draft_model": "0", "adapter": "0", "twin": "9", "window": 4}
    own = {key: value for key, value in given.items() if key in resolve(drafter, {})}
    packed = run("packed", model, streams=3, drafter=drafter, rollback=rollback, **own, **common)
    assert [packed.text(i) for i in range(3)] == [alone.text(i) for i in range(3)]
    assert len(packed.rounds()) < 39 or drafter == "jacobi"


@pytest.mark.parametrize("control", ["sabotage", "oracle"])
def test_controls_of_packed_answers_know_every_answer(control):
    common = {"prompts": PROMPTS, "temperature": 0.5}
    alone = run("autoregressive", n_predict=50, **common)
    answers = [alone.text(i) for i in range(3)]
    trace = run("packed", streams=3, drafter="mtp", draft=3, n_predict=40, control=control, answer=answers, **common)
    assert acceptance(trace) == (control == "oracle")
    assert [trace.text(i) for i in range(3)] == [answer[:40] for answer in answers]


def test_a_perfect_draft_model_is_always_right_and_costs_what_it_costs():
    """Seed 0 is the target itself: each round of 3 guesses emits 4 tokens for 3 small steps and one of width 4."""
    trace = run("draft", draft=3, draft_model="0", n_predict=41)
    rounds = trace.rounds()
    assert acceptance(trace) == 1
    assert [r.width for r in rounds] == [4] * 10
    # After a full accept the drafter has two tokens to take in, its own last guess and the draw behind it.
    assert [r.draft_ns for r in rounds][1:] == [int(10 * MS * 1.3) + 2 * 10 * MS] * 9
    assert all(r.decode_ns == int(10 * MS * 1.9) for r in rounds)


def test_the_head_guesses_the_token_behind_the_newest_one():
    trace = run("mtp", draft=4, n_predict=41)
    assert acceptance(trace) == 1
    assert [r.width for r in trace.rounds()] == [5] * 8
    assert rate(trace) > rate(run("autoregressive", n_predict=41))


def test_confirmed_tokens_wait_for_the_next_decode_and_no_longer_than_they_may():
    """With every guess wrong and a checkpoint, a round confirms one token that its sequence has to be given again."""
    model = toy(no_rewind=True, no_snapshots=True)
    plain = run("autoregressive", model, n_predict=41)
    trace = run("mtp", model, draft=3, n_predict=31, rollback="checkpoint", control="sabotage", answer=plain.text())
    assert trace.text() == plain.text()[:31]
    widths = [r.width for r in trace.rounds()[: AGAIN + 2]]
    assert widths == [4, 5, 6, 7, 8, 4], "tokens pile up before the guesses, then get a decode of their own"
    assert [r.redecoded for r in trace.rounds()[: AGAIN + 2]] == [0, 0, 0, 0, 1, 0]


def test_a_memory_that_cannot_forget_is_unsupported():
    with pytest.raises(Unsupported, match="does not drop its newest tokens"):
        run("mtp", toy(no_rewind=True, no_snapshots=True, bad_head=1.0), n_predict=30)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_the_head_leads_a_stagger(streams, temperature):
    model = toy(no_rewind=True, no_snapshots=True, bad_head=0.2)
    common = {"temperature": temperature, "n_predict": 45, "streams": streams, "emission": "distinct"}
    plain = run("autoregressive", model, temperature=temperature, n_predict=45).text()
    trace = run("stagger", model, rebuild="mtp", **common)
    assert trace.text(verified_only=True)[:45] == plain
    steady = [r for r in trace.rounds() if r.phase == "steady"]
    assert {r.width for r in steady} == {streams + 1}, "the leading stream has one token to catch up"
    assert {r.redecoded for r in steady[1:]} == {streams - 2}, "one single decode fewer than an exact rebuild"


def test_the_head_saves_the_stagger_a_decode():
    settings = {"streams": 3, "emission": "distinct", "n_predict": 61}
    assert rate(run("stagger", rebuild="mtp", **settings)) > rate(run("stagger", rebuild="exact", **settings))


def test_lookup_is_believed_without_the_head_once_it_was_right():
    """A vetoed match leaves the head's guess; an agreed one is taken; after a full accept the head is not asked."""
    asked = []

    class Head:
        def propose(self, limit):
            asked.append(limit)
            return [3]

        def observe(self, *_):
            pass

        def begin(self, *_):
            pass

    drafter = LookupMtp(Lookup(longest=2, shortest=2), Head(), head_draft=1)
    drafter.begin([1, 2, 3, 4, 1, 2], 6)
    assert drafter.propose(3) == [3, 4, 1]
    drafter.observe([3, 4, 1, 2], [], 3)
    assert (drafter.propose(2), asked) == ([3, 4], [1])
    drafter.observe([9], [8], 2)
    assert (drafter.propose(2), asked) == ([3], [1, 1])
    drafter.begin([1, 2, 7, 4, 1, 2], 6)
    assert drafter.propose(3) == [3], "7 followed the match and the head says 3"


class SaysAgain(FakeHead):
    """A head that only knows what the trunk has just said: fed with a token's own state it is right (t + 1)."""

    def decode_after(self, tokens, positions, sequences, hidden, outputs):
        super().decode_after(tokens, positions, sequences, hidden, outputs)
        self._put([self.model.row(tokens[row], whole(hidden[row])) for row in outputs])


def test_which_token_a_head_speaks_about_is_measured():
    model = toy()
    spec = ContextSpec(200, 1, hidden=True)
    tokens = np.random.default_rng(3).integers(0, model.n_vocab, 60).tolist()
    good = pairing(model.context(spec), model.head(None, spec), tokens)
    assert (good.t_plus_2, good.drafts) == (1.0, True)
    assert good.t_plus_1 < 0.6, "the newest token alone tells much of what follows"
    bad = pairing(model.context(spec), SaysAgain(model, spec), tokens)
    assert (bad.t_plus_1, bad.drafts) == (1.0, False)


def test_a_guess_behind_guesses_leaves_no_trace():
    model = toy()
    trunk, head = model.context(ContextSpec(90, 1, hidden=True)), model.head(None, ContextSpec(90, 1))
    mtp = Mtp(head, lambda ctx, *_: ctx.greedy()[-1])
    trunk.decode([1, 2, 3], [0, 1, 2], [0] * 3, None)
    mtp.watch(0, [1, 2, 3], trunk.hidden)
    mtp.begin([1, 2, 3, trunk.greedy()[-1]], 3)
    first = mtp.propose(1)
    rows = [trunk.greedy()[-1], first[0]]
    trunk.decode(rows, [3, 4], [0, 0], None)
    mtp.watch(3, rows, trunk.hidden)
    behind = mtp.propose_behind(first)
    assert behind == trunk.greedy()[-1], "the guess behind a right guess is what the trunk says there"
    mtp.observe(first, [], 1)
    assert mtp.propose(1) == [behind]


def test_a_model_without_a_head_is_unsupported():
    model = toy()
    model.n_nextn = 0
    with pytest.raises(Unsupported, match="no nextn layer"):
        run("mtp", model, n_predict=8)


def test_a_draft_model_is_found_by_its_path():
    assert toy().sibling(Path("/models/4")).seed == 4


@pytest.mark.parametrize(("streams", "window"), [(2, 5), (8, 3), (3, 2)])
def test_the_window_of_packed_jacobi_is_its_own(streams, window):
    """Neither the number of answers nor anything else decides how many guesses an answer has."""
    prompts = [(1, 2, 4 + i) for i in range(streams)]
    trace = run("packed", streams=streams, prompts=prompts, drafter="jacobi", window=window, n_predict=20)
    assert trace.rounds()[0].width == streams * window
    assert {r.drafted for r in trace.rounds()[:2]} == {streams * (window - 1)}


def acceptance_of(seeds, **settings):
    """(accepted, collision probability) of every guess of jacobi behind the first that was made of drawn tokens."""
    model = replace(toy(), spread=1.0)
    found = []
    for seed in range(seeds):
        draws = run("jacobi", model, temperature=1.0, seed=seed, n_predict=60, window=3, **settings).draws()
        found += [(draw.accepted, draw.collision) for draw in draws if draw.depth == 1]
    return np.array(found, dtype=float)


def test_jacobi_says_whose_random_numbers_its_guesses_have():
    """Flat logits: a guess with a number of its own is right no more often than the distribution collides with itself.

    One that shares the number of the draw that it meets is, though both are drawn behind a wrong guess. The text is the
    same.
    """
    coupled, own = acceptance_of(40), acceptance_of(40, draws="independent")
    error = 0.25 / np.sqrt(len(own))
    assert 0 < own[:, 0].mean() < own[:, 1].mean() + 4 * error
    assert coupled[:, 0].mean() > coupled[:, 1].mean() + 8 * error
    texts = [run("jacobi", temperature=0.9, n_predict=40, draws=draws).text() for draws in ("coupled", "independent")]
    assert texts[0] == texts[1] == run("autoregressive", temperature=0.9, n_predict=40).text()
    assert resolve("jacobi", {})["draws"] == "coupled"


@pytest.mark.parametrize("name", ["lookup", "mtp", "jacobi"])
def test_nothing_is_drawn_behind_a_miss_but_for_whoever_listens(name, monkeypatch):
    drawn = []
    pick = Sampler.pick
    monkeypatch.setattr(Sampler, "pick", lambda self, logits, u: drawn.append(u) or pick(self, logits, u))
    own = {"ngram": 1, "draft": 3} if name == "lookup" else {"draft": 3, "draws": "greedy"} if name == "mtp" else {}
    trace = run(name, toy(bad_head=0.5), temperature=0.9, n_predict=60, **own)
    confirmed = 1 + sum(r.accepted + 1 for r in trace.rounds())
    width = sum(r.drafted + 1 for r in trace.rounds())
    assert width > confirmed + 10, "something was wrong behind a miss, or this tests nothing"
    assert len(drawn) == (1 + width if name == "jacobi" else confirmed)


@pytest.mark.parametrize("emission", ["published", "distinct"])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_stagger_draws_nothing_behind_a_miss(temperature, emission, monkeypatch):
    drawn = []
    draw = Sampler.draw
    monkeypatch.setattr(Sampler, "draw", lambda self, *args: drawn.append(args) or draw(self, *args))
    monkeypatch.setattr(loop, "AT_ONCE", 0)
    answer = run("autoregressive", temperature=temperature, n_predict=60).text()
    control = "none" if temperature else "sabotage"
    drawn.clear()
    trace = run("stagger", streams=4, emission=emission, temperature=temperature, n_predict=40, control=control,
                answer=answer, rebuild="none" if emission == "published" else "exact")  # fmt: skip
    steady = [one for one in trace.rounds() if one.phase == "steady"]
    # At temperature 0 what makes the guesses takes its argmax itself.
    guesses = sum(one.redecoded for one in steady) + len(trace.rounds()) - len(steady) + 1 if temperature else 0
    assert len(drawn) == guesses + sum(one.accepted + 1 for one in steady)
    assert any(one.accepted < 2 for one in steady), "something was wrong behind a miss, or this tests nothing"


@pytest.mark.parametrize("name", ["lookup", "stagger"])
def test_greedy_rows_are_looked_at_together_where_they_are_small_and_one_by_one_else(name, monkeypatch):
    settings = {"draft": 3} if name == "lookup" else {"streams": 3}
    together = run(name, n_predict=40, **settings)
    monkeypatch.setattr(loop, "AT_ONCE", 0)
    assert run(name, n_predict=40, **settings).text() == together.text()
    monkeypatch.setattr(loop, "AT_ONCE", 1 << 18)
    monkeypatch.setattr(Sampler, "draw", None)
    assert run(name, n_predict=40, **settings).text() == together.text()


@pytest.mark.parametrize("draft", [2, 4])
def test_a_drafter_on_a_recurrent_memory_goes_on_from_its_own_text(draft):
    """It decodes its guesses one by one, and no snapshot reaches back behind the newest decode."""
    settings = {"draft": draft, "twin": "1", "n_predict": 60, "prompts": [range(4, 20)]}
    trace = run("twin", toy(no_rewind=True), rollback="snapshots", **settings)
    alone = run("twin", toy(), **settings)
    guessed = [[(draw.position, draw.guess) for draw in one.draws()] for one in (trace, alone)]
    assert guessed[0] == guessed[1], "its guesses are those that it makes where memory forgets in place"
    assert 0.2 < acceptance(alone) < 1


def test_what_a_drafter_does_with_the_prompt_is_its_own_time():
    """The other model evaluates the prompt in one step; the head's states are looked at while the target's run."""
    trace = run("draft", draft=2, draft_model="1", n_predict=10, prompts=[range(4, 24)])
    assert (trace.prefill_ns, trace.draft_prefill_ns) == (int(10 * MS * (1 + 0.3 * 19)),) * 2
    assert trace.begin_ns == 0, "nobody called"
    assert run("lookup", n_predict=10).draft_prefill_ns == 0
    head = run("stagger", rebuild="mtp", streams=3, emission="distinct", n_predict=10)
    assert head.draft_prefill_ns == MS, "the head's step is a tenth of one"
    assert run("mtp", n_predict=10, prompts=[(1, 2), (3, 4)][:1]).draft_prefill_ns == MS


def test_a_guess_that_is_planted_is_as_long_as_it_may_be():
    plain, oracle, sabotage = (Guesses(control, [[5, 6, 7, 8]], 10, [6]) for control in ("none", "oracle", "sabotage"))
    assert plain.fill(1, [9], 3) == [9]
    assert oracle.fill(1, [9], 3) == [6, 7, 8]
    assert sabotage.fill(0, [], 2) == [7, 7], "6 is banned, and 7 is wrong for both"
    assert (plain.twin(3), oracle.twin(3), sabotage.twin(3)) == (3, 0, 3)
