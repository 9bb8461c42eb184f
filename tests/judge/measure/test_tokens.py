"""Counting from the ledger: the known ways to count wrong, each with its right value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bench.judge.measure.tokens import arrays, count_runs, count_tokens, timeline, window_tok_s
from pti_loop.ledger import RecordError


def ledger(rows: list[tuple[int, int, int, int]], t_ns: list[int] | None = None) -> pd.DataFrame:
    """Rows of (stream, position, token, round)."""
    frame = pd.DataFrame(rows, columns=["stream", "position", "token", "round"])
    return frame.assign(t_ns=t_ns if t_ns is not None else range(len(rows)))


def published_loop(rounds: int, streams: int) -> pd.DataFrame:
    """The 4-sequence loop: one token from the prefill, then every round emits `streams` tokens and moves by one."""
    rows = [(0, 0, 5, -1)]
    rows += [(0, turn + 1 + k, 6 + turn + k, turn) for turn in range(rounds) for k in range(streams)]
    return ledger(rows)


def test_c01_duplicate_emission_is_counted_once() -> None:
    steps = [[5, 6, 7, 8], [6, 7, 8, 9], [7, 8, 9, 10]]
    rows = [(0, turn + 1 + k, token, turn) for turn, tokens in enumerate(steps) for k, token in enumerate(tokens)]
    count = count_tokens(ledger(rows))
    assert (count.counted, count.distinct, count.duplicates, count.verdict) == (12, 6, 6, "duplicate")
    assert count.tok_s(0.30) == pytest.approx(20.0)
    assert count.counted_tok_s(0.30) == pytest.approx(40.0)


def test_the_published_loop_counts_317_tokens_and_makes_83() -> None:
    seconds = 317 / 38.1
    count = count_tokens(published_loop(79, 4), requested=80)
    assert (count.counted, count.distinct, count.first) == (317, 83, 1)
    assert count.counted_tok_s(seconds, first_inside=True) == pytest.approx(38.1)
    assert round(count.tok_s(seconds, first_inside=True), 1) == 10.0
    assert count.tok_s(seconds) == pytest.approx(82 / seconds)


@pytest.mark.parametrize(("streams", "counted", "distinct"), [(1, 80, 80), (2, 159, 81), (3, 238, 82), (4, 317, 83)])
def test_counted_is_1_plus_ns_and_distinct_is_n_plus_s(streams: int, counted: int, distinct: int) -> None:
    count = count_tokens(published_loop(79, streams))
    assert (count.counted, count.distinct) == (counted, distinct)


def test_c08_tokens_and_seconds_cover_the_same_interval() -> None:
    rows = [(0, place, place, place - 1) for place in range(5)]
    emits = ledger(rows, [place * 100_000_000 for place in range(5)])
    assert count_tokens(emits).tok_s(0.4) == pytest.approx(10.0)
    assert window_tok_s(emits) == pytest.approx(10.0)


def test_c03_ids_are_counted_at_emission() -> None:
    assert count_tokens(ledger([(0, place, 220, place) for place in range(15)])).distinct == 15


def test_c11_streams_are_counted_apart() -> None:
    rows = [(stream, place, 1, place - 1) for stream in range(4) for place in range(65)]
    count = count_tokens(ledger(rows))
    assert (count.streams, count.first, count.duplicates) == (4, 4, 0)
    assert count.tok_s(3.2) == pytest.approx(80.0)
    assert count.tok_s(3.2) / count.streams == pytest.approx(20.0)


def test_more_than_requested_and_gaps_are_verdicts() -> None:
    assert count_tokens(ledger([(0, place, 1, place) for place in range(5)]), requested=4).verdict == "over_requested"
    skipping = count_tokens(ledger([(0, place, 1, place) for place in (0, 1, 4)]))
    assert (skipping.verdict, skipping.gaps) == ("gap", 2)
    assert count_tokens(ledger([(0, place, 1, place) for place in range(4)]), requested=4).verdict == "distinct"


def test_another_token_at_the_same_place_is_a_conflict() -> None:
    assert count_tokens(ledger([(0, 1, 5, 0), (0, 1, 5, 1)])).conflicts == 0
    assert count_tokens(ledger([(0, 1, 5, 0), (0, 1, 6, 1)])).conflicts == 1


def test_prefill_rows_are_known_by_source_when_there_is_no_round() -> None:
    emits = pd.DataFrame({"stream": [0, 0], "position": [0, 1], "token": [1, 2], "source": ["prefill", "verified"]})
    assert count_tokens(emits).first == 1


def test_counts_of_a_cell_agree_with_counting_every_run_by_itself() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.integers(0, high, 3000) for name, high in
                          {"run": 7, "stream": 3, "position": 60, "token": 4, "round": 50}.items()})  # fmt: skip
    frame["round"] -= 1
    startup = (np.arange(7), np.full(7, 3))
    counts = count_runs(arrays(frame), np.array([6, 5, 4, 3, 2, 1, 0]), startup)
    for index, run in enumerate(range(6, -1, -1)):
        mine = frame[frame["run"] == run]
        first = mine.drop_duplicates(["stream", "position"])
        assert counts.counted[index] == (mine["round"] >= 0).sum()
        assert counts.distinct[index] == (first["round"] >= 0).sum()
        assert counts.duplicates[index] == len(mine) - len(first)
        assert counts.startup[index] == (first["round"] == 3).sum()
        assert counts.streams[index] == mine["stream"].nunique()


def test_rows_of_an_unknown_run_are_an_error() -> None:
    with pytest.raises(RecordError, match="run 9"):
        count_runs(arrays(ledger([(0, 0, 1, 0)]).assign(run=9)), np.array([1, 2]))


def test_timeline_ends_at_the_totals_and_stays_short() -> None:
    loop = published_loop(200, 4)
    # Rows are stored as they were emitted; times decide, whatever the order of the rows.
    for emits in (loop, loop[::-1]):
        curve = timeline(arrays(emits.assign(t_ns=10 * emits.index)), 0)
        assert [len(values) for values in curve.values()] == [200, 200, 200]
        assert (curve["counted"][-1], curve["distinct"][-1]) == (800, 203)
        first = loop.drop_duplicates(["stream", "position"]).index.to_numpy()
        for t_s, counted, distinct in zip(*curve.values(), strict=True):
            assert counted == round(t_s * 1e8) and distinct == ((first > 0) & (first <= counted)).sum()


def _sourced(rows: list[tuple[int, str]]) -> dict[str, np.ndarray]:
    """Emits of one run and stream: (position, source), a nanosecond apart; the first is the prefill's."""
    size = len(rows)
    return {
        "run": np.zeros(size, dtype=np.int64), "stream": np.zeros(size, dtype=np.int64),
        "position": np.array([row[0] for row in rows]), "token": np.array([7 + row[0] for row in rows]),
        "round": np.arange(size) - 1, "source": np.array([row[1] for row in rows]), "t_ns": np.arange(size),
    }  # fmt: skip


def test_what_nothing_ever_confirms_is_no_token_of_a_speed():
    emits = _sourced([(0, "prefill"), (1, "unverified"), (2, "unverified"), (1, "verified"), (2, "unverified"),
                      (3, "unverified"), (2, "verified"), (2, "unverified")])  # fmt: skip
    counts = count_runs(emits, np.array([0]))
    assert (counts.counted[0], counts.distinct[0], counts.unverified[0], counts.first[0]) == (7, 2, 1, 1)
    assert counts.duplicates[0] == 4 and counts.gaps[0] == 0
    line = timeline(emits, 0)
    assert line["counted"][-1] == 7 and line["distinct"][-1] == 2
    assert line["distinct"].tolist() == [1, 2, 2, 2, 2, 2, 2]


def test_a_round_of_the_start_gives_no_token_that_nothing_confirms():
    emits = _sourced([(0, "prefill"), (1, "unverified"), (2, "verified")])
    counts = count_runs(emits, np.array([0]), (np.array([0, 0]), np.array([0, 1])))
    assert (counts.startup[0], counts.distinct[0]) == (1, 1)
