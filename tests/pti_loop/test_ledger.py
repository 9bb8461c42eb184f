"""Rows that contradict themselves cannot be built, and a trace counts as it should."""

from __future__ import annotations

import pytest

from pti_loop.ledger import Emit, RecordError, Round, Trace

ROUND = (0, 0, "steady", 4, 0, 10, 1, 0, 11)


@pytest.mark.parametrize("counts", [(3, 4, 0), (3, 2, 3), (3, -1, 0), (3, 2, -1)])
def test_more_accepted_than_verified_than_drafted_cannot_be(counts):
    with pytest.raises(RecordError, match="does not hold"):
        Round(*ROUND, *counts)


def test_a_round_that_holds():
    assert Round(*ROUND, 3, 2, 1).accepted == 1


@pytest.mark.parametrize(("field", "value"), [("phase", "warm"), ("width", 0)])
def test_a_round_of_no_known_phase_or_width(field, value):
    values = dict(zip(Round.__slots__, (*ROUND, 0, 0, 0, 0), strict=True)) | {field: value}
    with pytest.raises(RecordError, match=field):
        Round(**values)


@pytest.mark.parametrize(("position", "source"), [(-1, "verified"), (0, "guessed")])
def test_an_emit_that_cannot_be(position, source):
    with pytest.raises(RecordError):
        Emit(0, 0, position, 5, 0, source, 0)


def test_text_takes_the_last_word_for_a_position_and_stops_at_a_gap():
    trace = Trace(0, lambda: 0)
    trace.emit(0, 0, 5, "prefill")
    trace.open_window()
    for position, token, source in ((1, 6, "unverified"), (2, 7, "unverified"), (1, 8, "verified"),
                                    (4, 9, "verified")):  # fmt: skip
        trace.emit(0, position, token, source)
    assert trace.text() == [5, 8, 7]
    assert trace.text(verified_only=True) == [5, 8]
    assert trace.said() == [5, 6]


def test_windows_of_several_answers_add_up():
    now = iter([100, 150, 1000, 1030])
    trace = Trace(0, lambda: next(now))
    trace.open_window()
    trace.close_window()
    trace.open_window()
    trace.close_window()
    assert (trace.start_ns, trace.end_ns, trace.window_ns) == (100, 1030, 80)


def test_a_token_is_said_inside_the_window_or_not_at_all():
    trace = Trace(7, lambda: 0)
    trace.emit(0, 0, 5, "prefill")
    with pytest.raises(RecordError, match="run 7: position 1 was emitted outside the timed window"):
        trace.emit(0, 1, 5, "verified")
    with pytest.raises(RecordError, match="position 1 was emitted outside the timed window as prefill"):
        trace.emit(0, 1, 5, "prefill")
    trace.open_window()
    with pytest.raises(RecordError, match="position 0 was emitted inside the timed window as prefill"):
        trace.emit(0, 0, 5, "prefill")
    trace.emit(0, 1, 5, "verified")
    trace.close_window()
    with pytest.raises(RecordError, match="position 2 was emitted outside"):
        trace.emit(0, 2, 5, "unverified")


def test_windows_open_and_close_in_turn():
    trace = Trace(0, lambda: 0)
    with pytest.raises(RecordError, match="closed without being open"):
        trace.close_window()
    with pytest.raises(RecordError, match="no timed window was opened"):
        trace.finish()
    trace.open_window()
    with pytest.raises(RecordError, match="opened twice"):
        trace.open_window()
    with pytest.raises(RecordError, match="was not closed"):
        trace.finish()
    trace.close_window()
    trace.finish()


def test_rows_get_the_number_that_the_run_has_when_they_are_read():
    """So that a method cannot tell a warm-up or a control by it."""
    trace = Trace(0, lambda: 0)
    trace.open_window()
    trace.emit(0, 1, 5, "verified")
    trace.draw(1, 1, 5, 5, 0.5)
    trace.round("steady", 2, (0, 1, 0, 0, 1), (1, 1, 1))
    trace.run = 9
    assert [row.run for row in (*trace.emits(), *trace.draws(), *trace.rounds())] == [9, 9, 9]


def test_reading_the_gauge_takes_none_of_the_runs_time():
    now = [0]
    joules = [100.0]

    def clock():
        now[0] += 1
        return now[0]

    def gauge():
        now[0] += 1_000_000  # what a driver takes
        joules[0] += 5.0
        return joules[0]

    trace = Trace(0, clock, gauge=gauge)
    trace.begin_ns = clock()
    trace.open_window()
    trace.pause()
    trace.resume()
    trace.close_window()
    trace.finish()
    assert trace.gauged == 10.0, "two stretches, and in each the counter rose once"
    assert trace.window_ns < 100 and trace.finish_ns - trace.begin_ns < 100
    (_, first_end, _), (second_start, second_end, _) = trace.spans
    assert second_start - first_end > 1_000_000, "by the machine's clock the readings lie between the stretches"
    assert second_end <= now[0]
