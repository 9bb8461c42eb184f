"""Edits of several files or columns that agree with each other: what one of them would contradict, the next mends."""

from __future__ import annotations

import pandas as pd

from bench.records.identity import stored_id
from bench.records.schema_1 import converted
from tests.faults.forged import stretch
from tests.faults.records import (
    DRAWN,
    H200,
    HONEST,
    LOOKUP,
    MTP,
    PACKED,
    PROFILE,
    PUBLISHED,
    ROUND_TIMES,
    WHOLE,
    fault,
)  # fmt: skip
from tests.faults.sharp import SHARP
from tests.faults.stored import Record

TOGETHER = "9506be55b742"
OF_RUNS = {"runs": ("start_ns", "end_ns", "begin_ns", "finish_ns"), "ledger": ("t_ns",)}
"""Times by the machine's clock."""
HOUR = 3600 * 10**9


def _shifted(record: Record, first: int, last: int, by: int) -> None:
    """Every time of the runs from `first` to `last`, by so many nanoseconds."""
    for name, columns in OF_RUNS.items():
        rows = record.tables[name]
        mine = rows["run"].between(first, last)
        rows.loc[mine, [column for column in columns if column in rows]] += by


def renamed(record: Record) -> None:
    """The id of what the configuration says."""
    config = converted(record.config) if record.config["schema"] == 1 else record.config
    made = stored_id(config, record.env["engine"]["build"], record.facts["model"]["sha256"])
    assert made is not None
    record.cell = made


# Times and clocks.


@fault("the last run ended an hour later, by every clock", LOOKUP, "seconds")
def _(record: Record) -> None:
    last = int(record.tables["runs"]["run"].max())
    _shifted(record, last, last, HOUR)


@fault("the second half was measured on another day", SHARP, "seconds")
def _(record: Record) -> None:
    last = int(record.tables["runs"]["run"].max())
    _shifted(record, last // 2, last, 24 * HOUR)


@fault("one run was measured an hour after its turn", WHOLE, "sequence")
def _(record: Record) -> None:
    _shifted(record, 5, 5, HOUR)


@fault("the first run was measured an hour before the others", MTP, "seconds")
def _(record: Record) -> None:
    _shifted(record, 1, 10**6, HOUR)


def _quicker_again(record: Record, arm: str) -> None:
    """Of each two runs of an arm that have as many rounds, the slower gets the times of the quicker."""
    runs, rounds, ledger = (record.tables[name] for name in ("runs", "rounds", "ledger"))
    for _, mine in runs[runs["arm"] == arm].groupby("block"):
        quick, slow = mine.loc[mine["decode_window_ns"].idxmin()], mine.loc[mine["decode_window_ns"].idxmax()]
        theirs, own = rounds["run"] == quick["run"], rounds["run"] == slow["run"]
        if theirs.sum() != own.sum():
            continue
        for name in ROUND_TIMES:
            rounds.loc[own, name] = rounds.loc[theirs, name].to_numpy()
        moved = int(slow["start_ns"] - quick["start_ns"])
        said = ledger["t_ns"][ledger["run"] == quick["run"]].to_numpy() + moved
        ledger.loc[ledger["run"] == slow["run"], "t_ns"] = said
        saved = int(slow["decode_window_ns"] - quick["decode_window_ns"])
        for name in ("decode_window_ns", "end_ns", "finish_ns"):
            if name in runs and runs.loc[slow.name, name] > 0:
                runs.loc[slow.name, name] -= saved


@fault("the treatment's slower runs are copies of its quicker ones", LOOKUP, "copies")
def _(record: Record) -> None:
    _quicker_again(record, "treatment")


@fault("the slower runs of a gain that there is not are copies of the quicker ones", HONEST, "copies")
def _(record: Record) -> None:
    _quicker_again(record, "treatment")


@fault("the treatment's times are scaled, and those of the carried prompt forgotten", TOGETHER, "pace")
def _(record: Record) -> None:
    stretch(record, 0.75, ("treatment", "solo"))


@fault("two fifths of each decode are left out of the rounds' parts", LOOKUP, "parts")
def _(record: Record) -> None:
    record.scale("rounds", ("decode_ns",), 0.6, "treatment")


@fault("plain decoding spent its time outside of all parts", PACKED, "parts")
def _(record: Record) -> None:
    record.scale("rounds", ("decode_ns",), 0.7, "baseline")


@fault("the clock was not read while the treatment ran", LOOKUP, "clocks")
def _(record: Record) -> None:
    record.tables["runs"].loc[record.mask("runs", "treatment"), "clock_mhz"] = float("nan")


# Arms, runs and streams in each other's place.


def _exchanged(record: Record, arm: str) -> None:
    """A control's runs called the treatment's, and the other way round, in the blocks that have both."""
    runs = record.tables["runs"]
    both = runs["block"].isin(runs["block"][runs["arm"] == arm])
    runs["arm"] = runs["arm"].where(~both, runs["arm"].replace({arm: "treatment", "treatment": arm}))


@fault("runs with right guesses planted are called the treatment's", LOOKUP, "oracle")
def _(record: Record) -> None:
    _exchanged(record, "oracle")


@fault("runs with wrong guesses planted are called the treatment's", MTP, "sabotage")
def _(record: Record) -> None:
    _exchanged(record, "sabotage")


@fault("two answers of a batch are in each other's place", PACKED, "grades")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    mine = record.mask("ledger", "treatment")
    ledger.loc[mine, "stream"] = ledger["stream"][mine].replace({0: 1, 1: 0})


@fault("copies of an answer are numbered otherwise", PUBLISHED, "compared")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    mine = record.mask("ledger", "treatment")
    ledger.loc[mine, "stream"] = ledger["stream"][mine].replace({0: 1, 1: 0})


@fault("the answers to two prompts are in each other's place", SHARP, "grades")
def _(record: Record) -> None:
    runs, ledger = record.tables["runs"], record.tables["ledger"]
    mine = runs[runs["arm"] == "treatment"].groupby("block")["run"].first().tolist()[:2]
    texts = [ledger["token"][ledger["run"] == run].to_numpy() for run in mine]
    for run, text in zip(mine, texts[::-1], strict=True):
        ledger.loc[ledger["run"] == run, "token"] = text


@fault("positions of ledger and draws are counted from one", LOOKUP, "rows")
def _(record: Record) -> None:
    for name in ("ledger", "draws"):
        record.tables[name].loc[record.mask(name, "treatment"), "position"] += 1


@fault("the carried prompt's runs are told in the other order", SHARP, "sequence")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[runs["arm"] == "carry", "order"] = [2, 1, 0]


# Tokens, guesses and rounds.


def _without_wrong_guesses(record: Record) -> None:
    """No draw shows a wrong guess, and no round one that was compared."""
    draws, rounds = record.tables["draws"], record.tables["rounds"]
    record.tables["draws"] = draws[~(record.mask("draws", "treatment") & (draws["guess"] != draws["drawn"]))]
    mine = record.mask("rounds", "treatment")
    rounds.loc[mine, "verified"] = rounds["accepted"][mine]


@fault("wrong guesses are in no draw and compared in no round", LOOKUP, "dropped")
def _(record: Record) -> None:
    _without_wrong_guesses(record)


@fault("wrong guesses of copies are in no draw and compared in no round", DRAWN, "dropped")
def _(record: Record) -> None:
    _without_wrong_guesses(record)


@fault("wrong guesses are in no draw, no round and no count", MTP, "dropped")
def _(record: Record) -> None:
    _without_wrong_guesses(record)
    rounds = record.tables["rounds"]
    mine = record.mask("rounds", "treatment")
    rounds.loc[mine, "drafted"] = rounds["accepted"][mine]


@fault("two plain rounds are told as one with a right guess", SHARP, "decoded")
def _(record: Record) -> None:
    """In the first run of the treatment that has such a pair; all its later rounds are numbered anew."""
    rounds, ledger, draws = (record.tables[name] for name in ("rounds", "ledger", "draws"))
    mine = rounds[record.mask("rounds", "treatment") & (rounds["drafted"] == 0)]
    first = next(at for at in mine.index if at + 1 in mine.index and rounds["run"][at] == rounds["run"][at + 1])
    run, number = int(rounds["run"][first]), int(rounds["round"][first])
    for name in ROUND_TIMES:
        rounds.loc[first, name] += rounds[name][first + 1]
    rounds.loc[first, ["width", "drafted", "verified", "accepted"]] = (2, 1, 1, 1)
    said = ledger[(ledger["run"] == run) & (ledger["round"] == number)]
    after = (ledger["run"] == run) & (ledger["round"] == number + 1)
    ledger.loc[said.index, "t_ns"] = int(ledger["t_ns"][after].max())
    place, token = int(said["position"].iloc[0]), int(said["token"].iloc[0])
    drawn = {"run": run, "round": number, "depth": 1, "position": place, "guess": token, "drawn": token,
             "collision": float("nan")}  # fmt: skip
    record.tables["rounds"] = rounds.drop(first + 1)
    draws = pd.concat([draws, pd.DataFrame([drawn])])
    for rows in (record.tables["rounds"], ledger, draws):
        later = (rows["run"] == run) & (rows["round"] > number)
        rows.loc[later, "round"] -= 1
    record.tables["draws"] = draws.sort_values(["run", "round", "depth"])


@fault("the last token of every answer was never confirmed", MTP, "verified")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    last = ledger["position"] == ledger.groupby("run")["position"].transform("max")
    ledger.loc[record.mask("ledger", "treatment") & last, "source"] = "unverified"


@fault("tokens in the middle of an answer were never confirmed", HONEST, "verified")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    ledger.loc[record.mask("ledger", "treatment") & ledger["position"].between(9, 12), "source"] = "unverified"


# Configurations that were written again, with the id that they give.


@fault("answers were to be twice as long", SHARP, "seeds")
def _(record: Record) -> None:
    record.config["n_predict"] *= 2
    renamed(record)


@fault("the same cell once more under the next seed", SHARP, "seeds")
def _(record: Record) -> None:
    record.config["seed"] += 1
    renamed(record)


@fault("decodes at temperature 0 are called those of 0.7", SHARP, "temperature")
def _(record: Record) -> None:
    record.config["temperature"] = 0.7
    renamed(record)


@fault("a drafter says that it makes no guesses, so that it needs no control", SHARP, "plain")
def _(record: Record) -> None:
    record.config["method"]["declaration"]["guesses"] = False
    record.drop("sabotage", "oracle")
    renamed(record)


@fault("the grade on F16 weights is gone, and said to have had no room", SHARP, "f16")
def _(record: Record) -> None:
    del record.tables["sharp"]
    record.facts["sharp"] = {"state": "no room", "reason": "the weights do not fit"}


# What was measured beside the runs.


@fault("the time that drafters took before the window is told, and nothing else of what was counted", LOOKUP, "whole")
def _(record: Record) -> None:
    record.tables["runs"]["draft_prefill_ns"] = 1000


@fault("one reading of the memory is far quicker than the one that counts", LOOKUP, "once")
def _(record: Record) -> None:
    record.facts["bandwidth"]["repeats"][0] *= 2


@fault("answers are compared over more tokens than were asked for", LOOKUP, "replays")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        row["n"] *= 2


@fault("a difference of draws is measured as one of logits", DRAWN, "replays")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        if row["first_difference"]:
            row["first_difference"]["quantity"] = "logit_gap"


@fault("a difference of logits is measured as one of draws", H200, "replays")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        if row["first_difference"]:
            row["first_difference"]["quantity"] = "cdf_distance"


@fault("steps are said to be timed behind a long text, all of them", PROFILE, "passes")
def _(record: Record) -> None:
    record.tables["steps"]["n_past"] += 4096
