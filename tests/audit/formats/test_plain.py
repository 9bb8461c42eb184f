"""Somebody's own table, column by column: every value by hand, each mistake with its line; and rows of a ledger."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.audit.formats.columns import meaning
from bench.audit.record import read_record, record_of
from bench.audit.text import source_of
from bench.audit.trials import Record
from bench.errors import UserError


def table(text: str, streams: int | None = None) -> Record:
    return record_of(source_of("post.csv", text.encode()), streams)


RUN = (
    "arm,prompt,category,emitted,seconds,drafted,accepted,skipped,rounds,n_prompt,n_prompt_evaluated,requested,temp,mhz,"
    "prefill_ms,total_s,reps,sd,depth,streams,acceptance,mean_length,speedup,rate,ngl,colour,pp_tok_s\n"
    "x,p,code,120,4,60,30,10,40,25,20,128,0.5,1700,250,5,3,0.25,512,2,75%,1.75,1.5,30,99,red,100\n"
)


def test_every_column_of_a_run() -> None:
    record = table(RUN)
    (one,) = record.trials
    assert (one.place, one.line, one.label, one.arm, one.prompt, one.category) == ("line 2", 2, "x p", "x", "p", "code")
    assert (one.emitted, one.counted, one.distinct, one.seconds) == (120, 120, 120, 4.0)
    assert (one.drafted, one.accepted, one.tested, one.rounds) == (60, 30, 50, 40)
    assert (one.prompt_tokens, one.evaluated, one.requested) == (25, 20, 128)
    assert (one.temperature, one.clock_mhz, one.prefill_seconds, one.total_seconds) == (0.5, 1700.0, 0.25, 5.0)
    assert (one.repetitions, one.spread, one.depth, one.streams, one.streams_known) == (3, 0.25, 512, 2, True)
    assert one.printed == {"tok_s": 30.0, "acceptance": 0.75, "mean_length": 1.75, "speedup": 1.5, "pp": 100.0}
    assert one.settings == {"ngl": "99", "colour*": "red"}
    (step,) = one.steps
    assert (step.line, step.seconds, step.width, step.rounds) == (2, 4.0, None, 40)
    assert (step.drafted, step.tested, step.accepted, step.emitted) == (60, 50, 30, 120)
    assert record.format == "a CSV" and record.notes == ("columns kept as settings: colour",)


def test_empty_cells_say_nothing() -> None:
    (one,) = table("arm,tok_s,emitted,seconds,depth,reps,temp,requested,rounds\nx,30,-,n/a,,--,none,0,0\n").trials
    assert (one.emitted, one.counted, one.depth, one.repetitions, one.temperature) == (None, 0, None, None, None)
    assert (one.requested, one.rounds, one.steps) == (None, None, ()) and math.isnan(one.seconds)
    assert math.isnan(one.prefill_seconds) and math.isnan(one.spread) and one.streams == 1 and not one.streams_known
    assert table("arm,tok_s,skipped,drafted\nx,30,20,9\n").trials[0].tested == 0, "no fewer than none"
    assert table("arm,tok_s,drafted,verified,skipped\nx,30,9,8,2\n").trials[0].tested == 8


@pytest.mark.parametrize(
    ("head", "cell", "seconds"),
    [
        ("seconds", "2", 2.0),
        ("ms", "250", 0.25),
        ("us", "250", 250e-6),
        ("ns", "250", 250e-9),
        ("seconds", "250 ms", 0.25),
        ("time", "2 min", 120.0),
        ("ms", "2 s", 2.0),
        ("ms", "5 us", 5e-6),
    ],
)
def test_a_unit_in_the_cell_goes_before_that_of_the_column(head: str, cell: str, seconds: float) -> None:
    assert table(f"arm,emitted,{head}\nx,10,{cell}\n").trials[0].seconds == pytest.approx(seconds)


def test_rates_of_one_answer_and_in_sum() -> None:
    one = table("arm,total tok/s,tok/s per user,np\nx,60,20,3\n").trials[0]
    assert one.printed == {"tok_s": 60.0, "answer_tok_s": 20.0} and (one.streams, one.label) == (3, "x")
    assert table("arm,tpot_ms,emitted\nx,25,9\n").trials[0].printed == {"answer_tok_s": 40.0}
    assert table("arm,tpot_ms,per_user\nx,25,39\n").trials[0].printed == {"answer_tok_s": 39.0}
    assert table("arm,tpot_ms,emitted\nx,0,9\n").trials[0].printed == {}
    spread = table("arm,tok_s\nx,30 ± 0.5\n").trials[0]
    assert (spread.spread, spread.printed) == (0.5, {"tok_s": 30.0})
    both = table("arm,aggregate_tok_s,per_user\nx,60 ± 2,20 ± 0.5\n").trials[0]
    assert both.spread == 0.5
    nameless = table("total tok/s,np\n60,3\n20,1\n").trials
    assert [trial.label for trial in nameless] == ["3 answers at once", "1 answer at once"]
    assert table("prompt,tok_s\n,60\n").trials[0].label == "a row"


def test_a_test_in_a_columns_name_is_a_trial_of_its_own() -> None:
    rows = table("arm,PP512 tok/s,TG128 tok/s,seconds,emitted\nx,900,30,2,50\ny,-,31,-,-\n").trials
    assert [(one.label, one.test, one.counted) for one in rows] == [
        ("x", "", 50),
        ("x pp512", "pp512", 0),
        ("x tg128", "tg128", 0),
        ("y tg128", "tg128", 0),
    ]
    assert rows[1].printed == {"pp": 900.0} and rows[2].printed == {"tok_s": 30.0} and rows[2].emitted is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arm,tok_s\nx,1\ny,fast\n", "line 3: tok_s is 'fast', expected a number"),
        ("arm,tok_s\nx,-1\n", "line 2: tok_s is -1, expected 0 or more"),
        ("arm,emitted,tok_s\nx,2.5,1\n", "line 2: emitted is '2.5', expected a whole number"),
        ("arm,order,tok_s\nx,,1\n", "line 2: order is empty, expected a whole number"),
        ("arm,seconds,ms,emitted\nx,1,1,1\n", "line 1: seconds and ms both give the time; keep one"),
        ("arm,tok_s\n", "line 1: has a header and no rows"),
        ("step,phase,emitted,seconds\n0,late,1,1\n", "line 2: phase is 'late', expected one of prefill, warmup"),
        ("step,t_s,emitted\n0,1,1\n1,,1\n", "line 3: has no time"),
        (
            "step,tokens,positions,seconds\n0,5 6,1,1\n",
            "line 2: 2 tokens and 1 positions; expected one position a token",
        ),
        ("step,tokens,stream,seconds\n0,5 6 7,0 1,1\n", "line 2: 3 tokens and 2 streams; expected one stream"),
        ("step,tokens,positions,seconds\n0,5,-2,1\n", "line 2: a position or a stream is below 0"),
        ("step,tokens,stream,seconds\n0,5,-1,1\n", "line 2: a position or a stream is below 0"),
        ("step,tokens,seconds\n0,5 a,1\n", "line 2: tokens is '5 a', expected whole numbers between spaces"),
        ("step,tokens,seconds\n0,99999999999,1\n", "line 2: a number that is larger than any token id"),
    ],
)
def test_a_cell_that_cannot_be_read_is_named(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words.replace("(", r"\(")):
        table(text)


def test_steps_of_a_run() -> None:
    text = (
        "arm,run,step,phase,tokens,positions,seconds,drafted,skipped,accepted,width,n_prompt,max_tokens\n"
        "x,1,0,prefill,9,0,0.5,,,,,30,64\n"
        "x,1,1,warmup,9,0,9,,,,,,\n"
        "x,1,2,startup,5,1,0.25,0,0,0,1,,\n"
        "x,1,3,steady,6 7,2 3,0.125,3,1,1,4,,\n"
        "x,1,4,,7 8,3 4,0.125,3,0,1,4,,\n"
    )
    (one,) = table(text).trials
    assert (one.place, one.line, one.label, one.arm) == ("lines 2-6", 2, "x 1", "x")
    assert (one.counted, one.distinct, one.first, one.rounds) == (5, 4, 1, 3)
    assert (one.seconds, one.startup_seconds, one.prefill_seconds) == (0.5, 0.25, 0.5)
    assert (one.startup_counted, one.startup_distinct, one.prompt_tokens, one.requested) == (1, 1, 30, 64)
    assert (one.drafted, one.tested, one.accepted) == (6, 5, 2)
    assert [(s.line, s.seconds, s.width, s.rounds, s.drafted, s.tested, s.accepted, s.emitted) for s in one.steps] == [
        (4, 0.25, 1, 1, 0, 0, 0, 1),
        (5, 0.125, 4, 1, 3, 2, 1, 2),
        (6, 0.125, 4, 1, 3, 3, 1, 2),
    ]
    assert (one.streams, one.streams_known) == (1, False)


def test_steps_without_ids() -> None:
    (one,) = table("step,phase,emitted,seconds,rounds\n0,startup,2,0.5,3\n1,steady,10,1,4\n2,steady,6,1,\n").trials
    assert (one.label, one.counted, one.distinct, one.emitted, one.rounds) == ("whole file", 18, 18, 18, 7)
    assert (one.startup_counted, one.startup_seconds, one.seconds) == (2, 0.5, 2.5)
    clocked = table("step,t_ms,emitted\n0,1000,4\n1,1500,6\n2,3000,5\n").trials[0]
    assert (clocked.first, clocked.counted, clocked.seconds) == (4, 11, 2.0)
    single = table("step,t_ms,emitted\n0,1000,4\n").trials[0]
    assert math.isnan(single.seconds) and single.place == "line 2"
    for unit, factor in (("t_s", 1e-3), ("t_us", 1e3), ("t_ns", 1e6)):
        text = f"step,{unit},emitted\n0,{1000 * factor:g},4\n1,{3000 * factor:.0f},6\n"
        assert table(text).trials[0].seconds == pytest.approx(2.0)
    three = table("step,emitted,seconds\n0,4,1\n", streams=3).trials[0]
    assert (three.streams, three.streams_known) == (3, False)


def test_streams_of_a_step() -> None:
    both = table("step,tokens,stream,seconds\n0,5 6,0 1,0.5\n1,7 8,0 1,0.5\n").trials[0]
    assert (both.streams, both.streams_known, both.counted) == (2, True, 4) and both.steps[0].rounds == 2
    one = table("step,tokens,stream,seconds\n0,5 6,1,0.5\n").trials[0]
    assert (one.streams, one.steps[0].rounds, one.steps[0].emitted) == (1, 1, 2)
    told = table("step,emitted,streams,seconds\n0,8,4,0.5\n").trials[0]
    assert (told.streams, told.streams_known) == (4, True)
    apart = table("t_s,tokens,positions,stream\n0,5,0,0\n1,6,1,0\n2,5,0,1\n3,6,1,1\n").trials[0]
    assert apart.streams == 1 and apart.seconds == pytest.approx(3.0), "one after the other"


@pytest.mark.parametrize(
    ("header", "name", "test"),
    [
        ("Tok/s", "tok_s", ""),
        ("**TG128**", "tok_s", "tg128"),
        ("pp 512 t/s", "pp", "pp512"),
        ("prompt tok/s", "pp", ""),
        ("total tok/s", "aggregate_tok_s", ""),
        ("tok/s per user", "answer_tok_s", ""),
        ("Time (s)", "seconds", ""),
        ("decode [ms]", "ms", ""),
        ("latency (ms)", "ms", ""),
        ("wall (s)", "total_s", ""),
        ("ttft (ms)", "prefill_ms", ""),
        ("np (answers)", "streams", ""),
        ("Flash-Attn", "flash_attn", ""),
        ("t=", "temperature", ""),
        ("throughput", "tok_s", ""),
        ("system throughput tok/s", "aggregate_tok_s", ""),
    ],
)
def test_what_a_column_is_called(header: str, name: str, test: str) -> None:
    found = meaning(header)
    assert found is not None and (found.name, found.test) == (name, test)


def test_names_without_a_meaning() -> None:
    assert [meaning(name) for name in ("colour", "", "(x)", "tg", "128")] == [None] * 5
    notes = table("arm,tok_s,draftd,notes\nx,30,4,warm\n").notes
    assert notes == (
        "columns not used: notes",
        "columns kept as settings: draftd (did you mean 'drafted'? 'draftd' is not read)",
    )
    assert table("run,emitted,seconds\n1,5,1\n", streams=2).notes == ()
    assert table("run,emitted,seconds\n1,5,1\n").notes == ("no stream column: taken as one answer (--streams N)",)


LEDGER = "run,stream,position,token,round,source,t_ns\n"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("-1,0,0,1,-1,prefill,0", "run is -1, expected a run of 0 or more"),
        ("0,-1,0,1,0,verified,0", "stream is -1, expected 0"),
        ("0,0,-1,1,0,verified,0", "position is -1, expected 0 or more"),
        ("0,0,0,1,-2,verified,0", "round is -2, expected -1"),
        ("0,0,0,1,0,other,0", "source is 'other', expected one of prefill, verified, unverified"),
        ("0,0,0,x,0,verified,0", "token is 'x', expected a whole number"),
        ("0,0,0,1,0,verified,", "t_ns is '', expected"),
        ("0,0,0,99999999999,0,verified,0", "larger than any token id"),
        ("0,0,0,1,0,verified", "6 fields, expected 7"),
        (",".join(["0"] * 7) + "0" * 5000, "is longer than 4096 characters"),
    ],
)
def test_a_row_of_a_ledger_that_is_none(tmp_path: Path, row: str, words: str) -> None:
    path = tmp_path / "ledger.csv"
    path.write_text(LEDGER + "0,0,0,1,-1,prefill,0\n" + row + "\n")
    with pytest.raises(UserError, match=f"line 3: .*{words}"):
        read_record(path)


def test_a_ledger_with_comments_quotes_and_columns_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "ledger.csv"
    path.write_text(
        '# mine\n\nt_ns,more,run,stream,position,token,round,source\n0,"a,b",0,0,0,1,-1,prefill\n'
        "500000000,x,0,0,1,2,0, unverified\n1000000000,x,0,0,2,3,1,verified\n"
    )
    (one,) = read_record(path).trials
    assert (one.counted, one.first, one.seconds, one.rounds) == (2, 1, 1.0, 2)
    assert one.emits is not None and one.emits.unverified == 1 and list(one.emits.token) == [1, 2, 3]
    for text, words in (
        (LEDGER.replace("token", "run"), "column 'run' stands twice"),
        ("# only\n", "nothing in its|comments"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=words):
            read_record(path)
