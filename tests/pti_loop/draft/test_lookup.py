"""Prompt lookup against a search through the whole text, its gate, its draft lengths, and the price of a long text."""

from __future__ import annotations

import random
import time

import pytest

from pti_loop.draft.lookup import LENGTHS, LONGEST_MATCH, Lookup


def searched(text: list[int], longest: int, shortest: int, limit: int) -> list[int]:
    """What lookup should say, by looking at every place: longest match first, then the most recent."""
    for size in range(longest, shortest - 1, -1):
        for start in range(len(text) - 1, size - 1, -1):
            if text[start - size : start] == text[-size:]:
                tail = text[start:]
                return [tail[place % len(tail)] for place in range(limit)]
    return []


@pytest.mark.parametrize(("longest", "shortest"), [(4, 2), (1, 1), (3, 3)])
def test_it_finds_what_a_search_through_the_text_finds(longest: int, shortest: int) -> None:
    rng = random.Random(longest)
    for letters in (2, 5, 30):
        text = [rng.randrange(letters) for _ in range(20)]
        drafter = Lookup(longest, shortest)
        drafter.begin(text)
        for _ in range(60):
            assert drafter.propose(5) == searched(text, longest, shortest, 5)
            more = [rng.randrange(letters) for _ in range(rng.randrange(1, 4))]
            drafter.observe(more, [], 0)
            text += more


def test_repetition_is_carried_on_around_the_end() -> None:
    drafter = Lookup()
    drafter.begin([9, 1, 2, 3, 1, 2, 3, 1, 2])
    assert drafter.propose(7) == [3, 1, 2, 3, 1, 2, 3]


def test_nothing_repeated_means_no_guess() -> None:
    drafter = Lookup()
    drafter.begin(list(range(50)))
    assert drafter.propose(7) == []


def test_an_answer_forgets_the_one_before() -> None:
    drafter = Lookup()
    drafter.begin([1, 2, 3, 4])
    drafter.begin([1, 2])
    assert drafter.propose(3) == []


def test_the_gate_shuts_after_misses_and_a_long_copy_opens_it() -> None:
    short = [1, 2, 3, 1, 2]
    plain, gated = Lookup(), Lookup(gate=True)
    for drafter in (plain, gated):
        drafter.begin(short)
        assert drafter.propose(3) == [3, 1, 2]
        drafter.observe([8], [7, 7, 7], 3)
        drafter.observe([1], [], 0)
        drafter.observe([2], [], 0)
    assert plain.propose(3) == [8, 1, 2]
    assert gated.propose(3) == [], "two tokens of match no longer do"
    copied = list(range(100, 100 + LONGEST_MATCH))
    gated.observe([*copied, 55, *copied], [], 0)
    assert gated.propose(1) == [55]
    gated.observe([55, 1], [], 1)
    assert gated.gate.bar == 2.0, "a full accept takes off what let the match through"


def test_the_bar_stays_within_reach() -> None:
    drafter = Lookup(gate=True)
    drafter.begin([1, 2])
    for _ in range(100):
        drafter.observe([3], [4], 1)
    assert drafter.gate.passes(LONGEST_MATCH) and not drafter.gate.passes(LONGEST_MATCH - 1)


def test_draft_lengths_climb_on_full_accepts_and_fall_on_a_miss() -> None:
    drafter = Lookup(adaptive=True)
    drafter.begin([5] * 100)
    lengths = []
    for _ in range(4):
        lengths.append(len(drafter.propose(99)))
        drafter.observe([5] * (lengths[-1] + 1), [], lengths[-1])
    assert lengths == [*LENGTHS, LENGTHS[-1]]
    drafter.observe([5], [5], 31)
    assert len(drafter.propose(99)) == LENGTHS[0]
    assert len(drafter.propose(3)) == 3, "the loop's limit holds"


@pytest.mark.parametrize(("longest", "shortest"), [(0, 0), (2, 3)])
def test_sizes_that_are_none_are_refused(longest: int, shortest: int) -> None:
    with pytest.raises(ValueError, match="shortest must be"):
        Lookup(longest, shortest)


def round_ns(length: int) -> float:
    """Fastest of many rounds with a text of that length."""
    rng = random.Random(1)
    drafter = Lookup(gate=True)
    drafter.begin([rng.randrange(50) for _ in range(length)])
    best = float("inf")
    for _ in range(300):
        began = time.perf_counter_ns()
        drafted = drafter.propose(7)
        drafter.observe([rng.randrange(50), 3], [], len(drafted))
        best = min(best, time.perf_counter_ns() - began)
    return best


def test_a_round_costs_the_same_however_long_the_text_is() -> None:
    assert round_ns(32768) < 5 * round_ns(512)
