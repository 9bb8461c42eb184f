"""Edited and broken records: one edit of a real cell each, with the check that must catch it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.records.identity import WRITTEN, cell_id
from bench.records.schema_1 import converted
from tests.faults.stored import Edit, Record

LOOKUP, PUBLISHED, HONEST, H200 = "9528e9b90995", "bd724658bd3b", "9efee8c4feb9", "0ae33316d91a"
PACKED, PROFILE, DRAWN, MTP = "41e5980671aa", "f6be9df46936", "16f7c0b53780", "d135156cb2d5"
WHOLE = "16476fce18bc"
"""A contrast whose arms do not take turns: what an edit of whole runs needs."""
ROUND_TIMES = ("draft_ns", "decode_ns", "sample_ns", "rollback_ns", "total_ns")


@dataclass(frozen=True)
class RecordFault:
    """One way to be wrong."""

    name: str
    cell: str
    edit: Edit
    check: str
    """Name of the control that must fail."""
    verdict: str = "void"


FAULTS: list[RecordFault] = []


def fault(name: str, cell: str, check: str, verdict: str = "void"):
    """Put an edit into the catalogue."""

    def keep(edit: Edit) -> Edit:
        FAULTS.append(RecordFault(name, cell, edit, check, verdict))
        return edit

    return keep


# Times.


@fault("the treatment's windows are halved", LOOKUP, "windows")
def _(record: Record) -> None:
    record.scale("runs", ("decode_window_ns",), 0.5, "treatment")


@fault("the treatment's windows are 5 % shorter", LOOKUP, "windows")
def _(record: Record) -> None:
    record.scale("runs", ("decode_window_ns",), 0.953, "treatment")


@fault("windows and rounds are halved, the ledger is not", LOOKUP, "windows")
def _(record: Record) -> None:
    record.scale("runs", ("decode_window_ns",), 0.5, "treatment")
    record.scale("rounds", ROUND_TIMES, 0.5, "treatment")


@fault("windows, rounds and ends are halved, the ledger is not", HONEST, "emits")
def _(record: Record) -> None:
    record.scale("runs", ("decode_window_ns",), 0.5, "treatment")
    record.scale("rounds", ROUND_TIMES, 0.5, "treatment")
    runs = record.tables["runs"]
    mask = record.mask("runs", "treatment")
    runs.loc[mask, "end_ns"] = runs["start_ns"] + runs["decode_window_ns"]


@fault("the baseline's windows are twice as long", PACKED, "windows")
def _(record: Record) -> None:
    record.scale("runs", ("decode_window_ns",), 2.0, "baseline")


@fault("starts and ends say that all baselines ran first", LOOKUP, "sequence")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    first = record.mask("runs", "baseline")
    moved = int(runs["end_ns"].max())
    for column in ("start_ns", "end_ns"):
        runs.loc[~first, column] += moved
    for name in ("ledger",):
        rows = record.tables[name]
        rows.loc[~record.mask(name, "baseline"), "t_ns"] += moved


@fault("two runs overlap", LOOKUP, "sequence")
def _(record: Record) -> None:
    runs, ledger = record.tables["runs"], record.tables["ledger"]
    back = int(runs["start_ns"].iloc[3] - runs["end_ns"].iloc[2]) + 10**6
    runs.loc[3, ["start_ns", "end_ns"]] -= back
    ledger.loc[ledger["run"] == 3, "t_ns"] -= back


@fault("all round times are in microseconds", LOOKUP, "rounds")
def _(record: Record) -> None:
    record.scale("rounds", ROUND_TIMES, 0.001, *record.tables["runs"]["arm"].unique())


@fault("round times and windows are in microseconds", LOOKUP, "windows")
def _(record: Record) -> None:
    arms = record.tables["runs"]["arm"].unique()
    record.scale("rounds", ROUND_TIMES, 0.001, *arms)
    record.scale("runs", ("decode_window_ns",), 0.001, *arms)


@fault("rounds last longer than their window", LOOKUP, "rounds")
def _(record: Record) -> None:
    record.scale("rounds", ROUND_TIMES, 1.02, "treatment")


@fault("every token came out at one time", LOOKUP, "emits")
def _(record: Record) -> None:
    record.tables["ledger"]["t_ns"] = 5


@fault("the treatment's tokens came out before its window", LOOKUP, "emits")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    ledger.loc[record.mask("ledger", "treatment"), "t_ns"] -= 10**9


@fault("a decode took a negative time", LOOKUP, "rows")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    rounds.loc[record.mask("rounds", "treatment"), "decode_ns"] *= -1


@fault("a round's parts last longer than the round", LOOKUP, "rows")
def _(record: Record) -> None:
    record.tables["rounds"].loc[3, "sample_ns"] += 10**9


@fault("every other round of the treatment decodes in no time", LOOKUP, "decodes")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    mask = record.mask("rounds", "treatment") & (rounds["round"] % 2 == 1)
    rounds.loc[mask, "decode_ns"] = 1000


@fault("the treatment's prefill takes as long as an answer", LOOKUP, "prefills")
def _(record: Record) -> None:
    record.scale("runs", ("prefill_ns",), 4.0, "treatment")


@fault("the baseline ran at half of the clock", LOOKUP, "clocks")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs["clock_mhz"] = np.where(record.mask("runs", "baseline"), 1000.0, 2500.0)


# Tokens, rounds and guesses.


def _again(record: Record, change) -> None:
    """Each token of a treatment's round once more, as `change` says."""
    ledger = record.tables["ledger"]
    mine = ledger[record.mask("ledger", "treatment") & (ledger["round"] >= 0)].copy()
    change(mine)
    record.tables["ledger"] = pd.concat([ledger, mine]).sort_values(["run", "t_ns"], kind="stable")


@fault("each token again as another stream", LOOKUP, "answers")
def _(record: Record) -> None:
    def change(rows: pd.DataFrame) -> None:
        rows["stream"] = 1

    _again(record, change)


@fault("the repeated tokens of the published loop as streams of their own", PUBLISHED, "answers")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    ledger["stream"] = ledger.groupby(["run", "stream", "position"]).cumcount()


@fault("each token again behind the answer", LOOKUP, "emitted")
def _(record: Record) -> None:
    def change(rows: pd.DataFrame) -> None:
        rows["position"] += 63

    _again(record, change)


@fault("invented tokens behind the answer, nothing confirmed", LOOKUP, "verified")
def _(record: Record) -> None:
    def change(rows: pd.DataFrame) -> None:
        rows["position"] += 63
        rows["source"] = "unverified"
        rows["token"] = 7

    _again(record, change)


@fault("an answer of which nothing was confirmed", LOOKUP, "records")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    mask = record.mask("ledger", "treatment") & (ledger["round"] >= 0)
    ledger.loc[mask, "source"] = "unverified"


@fault("garbage behind a known near tie's answer", H200, "grades")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    runs = record.tables["runs"]
    mine = runs["run"][(runs["arm"] == "treatment") & (runs["prompt"] == "edit_timeout")]
    ledger.loc[ledger["run"].isin(mine) & (ledger["position"] >= 2), "token"] = 99


@fault("plain decoding says other tokens the second time", LOOKUP, "again_output")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    ledger.loc[record.mask("ledger", "again") & (ledger["position"] > 5), "token"] += 1


@fault("plain decoding says other tokens the second time, and a grade excuses it", LOOKUP, "again_output")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    mask = record.mask("ledger", "again") & (ledger["position"] == 5)
    was = int(ledger.loc[mask, "token"].iloc[0])
    ledger.loc[mask, "token"] = was + 1
    for row in record.facts["lossless"]:
        if row["arm"] == "again":
            row["first_difference"] = {"position": 5, "token_baseline": was, "token_arm": was + 1, "gap_baseline": 1e-9,
                                       "gap_arm": 1e-9, "quantity": "logit_gap"}  # fmt: skip


@fault("the draws are gone and every guess counts as right", LOOKUP, "draws")
def _(record: Record) -> None:
    del record.tables["draws"]
    rounds = record.tables["rounds"]
    rounds["verified"] = rounds["accepted"] = rounds["drafted"]


@fault("the treatment's draws are gone", LOOKUP, "draws")
def _(record: Record) -> None:
    record.tables["draws"] = record.tables["draws"][~record.mask("draws", "treatment")]


@fault("one round accepts one more", LOOKUP, "draws")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    at = rounds.index[record.mask("rounds", "treatment") & (rounds["accepted"] < rounds["verified"])][0]
    rounds.loc[at, "accepted"] += 1


@fault("every guess is what was drawn", LOOKUP, "emitted")
def _(record: Record) -> None:
    rounds, draws = record.tables["rounds"], record.tables["draws"]
    mask = record.mask("draws", "treatment")
    draws.loc[mask, "guess"] = draws.loc[mask, "drawn"]
    mask = record.mask("rounds", "treatment")
    rounds.loc[mask, "accepted"] = rounds.loc[mask, "verified"]


@fault("the draws are other tokens than those said", LOOKUP, "draws")
def _(record: Record) -> None:
    record.tables["draws"][["guess", "drawn"]] += 1


@fault("arms are exchanged", LOOKUP, "plain")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs["arm"] = runs["arm"].replace({"baseline": "treatment", "treatment": "baseline"})


@fault("the baseline drafts", LOOKUP, "plain")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    rounds.loc[record.mask("rounds", "baseline"), "drafted"] = 1


@fault("half of the treatment's rounds are missing", LOOKUP, "rows")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    record.tables["rounds"] = rounds[~(record.mask("rounds", "treatment") & (rounds["round"] % 2 == 1))]


@fault("one round a run is missing", LOOKUP, "emits")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    last = rounds.groupby("run")["round"].transform("max")
    record.tables["rounds"] = rounds[rounds["round"] < last]


@fault("more accepted than verified", LOOKUP, "rows")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    rounds.loc[rounds.index[record.mask("rounds", "treatment")][3], ["verified", "accepted"]] = (2, 9)


@fault("the treatment stops at half of the answer", LOOKUP, "answers")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    record.tables["ledger"] = ledger[~(record.mask("ledger", "treatment") & (ledger["position"] > 31))]


@fault("one decode of three rows says more than it had", MTP, "emitted")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    rounds.loc[record.mask("rounds", "treatment"), "width"] = 1


@fault("the treatment drafts otherwise the second time", LOOKUP, "repeats")
def _(record: Record) -> None:
    draws, runs = record.tables["draws"], record.tables["runs"]
    second = runs["run"][runs["arm"] == "treatment"].iloc[1]
    mask = (draws["run"] == second) & (draws["guess"] != draws["drawn"])
    draws.loc[mask, "guess"] += 1


@fault("the treatment says other tokens the second time", H200, "repeats")
def _(record: Record) -> None:
    ledger, runs = record.tables["ledger"], record.tables["runs"]
    second = runs["run"][runs["arm"] == "treatment"].iloc[1]
    ledger.loc[(ledger["run"] == second) & (ledger["position"] == 60), "token"] += 1


@fault("a guess's probability at temperature 0", LOOKUP, "temperature")
def _(record: Record) -> None:
    record.tables["draws"]["collision"] = 0.5


@fault("draws above temperature 0 without a probability", DRAWN, "temperature")
def _(record: Record) -> None:
    record.tables["draws"]["collision"] = float("nan")


# What was measured.


@fault("blocks of slow prompts are left out", LOOKUP, "blocks")
def _(record: Record) -> None:
    kept = {1, 4}
    runs = record.tables["runs"]
    out = set(runs["run"][~runs["block"].isin(kept)])
    for name in ("runs", "rounds", "ledger", "draws"):
        record.tables[name] = record.tables[name][~record.tables[name]["run"].isin(out)]
    prompts = set(record.tables["runs"]["prompt"])
    record.facts["lossless"] = [row for row in record.facts["lossless"] if row["prompt"] in prompts]


@fault("one prompt took the place of another", LOOKUP, "blocks")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[runs["block"] == 1, "prompt"] = "edit_timeout"


@fault("a run is left out of its block", LOOKUP, "blocks")
def _(record: Record) -> None:
    for name in ("runs", "rounds", "ledger", "draws"):
        record.tables[name] = record.tables[name][record.tables[name]["run"] != 1]


@fault("the A/A control is left out", LOOKUP, "blocks")
def _(record: Record) -> None:
    record.drop("again")


@fault("sabotage is left out", LOOKUP, "blocks")
def _(record: Record) -> None:
    record.drop("sabotage")


@fault("the oracle is left out", PUBLISHED, "blocks")
def _(record: Record) -> None:
    record.drop("oracle")


@fault("one stream alone is left out", PUBLISHED, "blocks")
def _(record: Record) -> None:
    record.drop("solo")


@fault("all controls and facts are left out", LOOKUP, "facts")
def _(record: Record) -> None:
    record.drop("again", "sabotage", "oracle")
    record.facts |= {"engine": {}, "noise": {}, "bandwidth": {}}


@fault("the bandwidth is left out", LOOKUP, "facts")
def _(record: Record) -> None:
    record.facts["bandwidth"] = {}


@fault("the noise is left out", LOOKUP, "facts")
def _(record: Record) -> None:
    record.facts["noise"] = {}


@fault("the engine's settings are left out", LOOKUP, "facts")
def _(record: Record) -> None:
    del record.facts["engine"]["treatment"]


@fault("the treatment was asked for another length", LOOKUP, "seeds")
def _(record: Record) -> None:
    record.tables["runs"].loc[record.mask("runs", "treatment"), "n_predict"] = 9999


@fault("a run has another seed", DRAWN, "seeds")
def _(record: Record) -> None:
    record.tables["runs"].loc[2, "seed"] += 7


@fault("two streams where four were decoded", PUBLISHED, "id")
def _(record: Record) -> None:
    record.config["streams"] = 2
    record.config["method"]["emission"] = "distinct"


@fault("one drafter's cell called another's", LOOKUP, "id")
def _(record: Record) -> None:
    record.config["method"]["name"] = "mtp"


@fault("another temperature than that of the draws", DRAWN, "id")
def _(record: Record) -> None:
    record.config["temperature"] = 1.0


@fault("another model's name", LOOKUP, "id")
def _(record: Record) -> None:
    record.config["model"]["name"] = "qwen3.6-27b"


@fault("other weights than those hashed", LOOKUP, "id")
def _(record: Record) -> None:
    record.facts["model"]["sha256"] = "0" * 64


@fault("a prompt's text is changed", LOOKUP, "id")
def _(record: Record) -> None:
    record.config["prompts"]["items"][0]["text"] += " please"


@fault("one cell under a second id", LOOKUP, "id")
def _(record: Record) -> None:
    record.cell = "0123456789ab"


@fault("the build of the provenance is another", LOOKUP, "id")
def _(record: Record) -> None:
    record.env["engine"]["build"] = "0.4.0-abcdef012-cpu"


@fault("the commit of the provenance is another", LOOKUP, "commit")
def _(record: Record) -> None:
    record.env["engine"]["llama_cpp_commit"] = "abcdef012"


@fault("the folder is called another machine", LOOKUP, "machine")
def _(record: Record) -> None:
    record.machine = "mi50"


@fault("a GPU's cell among those of a CPU", H200, "machine")
def _(record: Record) -> None:
    record.machine = "amd-epyc-2c"


@fault("the provenance is another machine's", LOOKUP, "machine")
def _(record: Record) -> None:
    record.env["machine"]["name"] = "mi50"


@fault("layers on a GPU that is not there", H200, "machine")
def _(record: Record) -> None:
    record.env["machine"]["gpus"] = []


@fault("the processor is renamed", LOOKUP, "name", "warning")
def _(record: Record) -> None:
    record.env["machine"]["cpu"] = "MI50"


# Grades.


@fault("a grade is left out", H200, "grades")
def _(record: Record) -> None:
    del record.facts["lossless"][0]


@fault("the grades that differ are left out", H200, "grades")
def _(record: Record) -> None:
    record.facts["lossless"] = [row for row in record.facts["lossless"] if row["first_difference"] is None]


@fault("a difference is denied", H200, "grades")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        row["first_difference"] = row["teacher_forced"] = None


@fault("a difference is told at another position", H200, "grades")
def _(record: Record) -> None:
    row = next(row for row in record.facts["lossless"] if row["first_difference"])
    row["first_difference"]["position"] += 1


@fault("a grade for an answer that nobody gave", LOOKUP, "grades")
def _(record: Record) -> None:
    record.facts["lossless"].append(record.facts["lossless"][0] | {"seed": 5})


# Records of schema 2.


def _of_schema_2(record: Record) -> None:
    record.config = dict(converted(record.config))
    del record.config[WRITTEN]
    record.config["schema"] = 2  # which has no manifest that an edit would contradict first
    record.cell = cell_id(record.config, record.env["engine"]["build"])


@fault("nothing tells what the contexts decoded", LOOKUP, "counted", "warning")
def _(record: Record) -> None:
    _of_schema_2(record)


@fault("a cell of schema 2 with another gate", LOOKUP, "id")
def _(record: Record) -> None:
    _of_schema_2(record)
    record.config["method"]["parameters"]["gate"] = True


@fault("a cell of schema 2 with another seed", LOOKUP, "id")
def _(record: Record) -> None:
    _of_schema_2(record)
    record.config["seed"] = 2


def _counted(record: Record) -> None:
    """Counts as contexts keep them, right."""
    runs, rounds = record.tables["runs"], record.tables["rounds"]
    per_run = rounds.groupby("run")
    made = runs["run"].map(per_run.size() + per_run["redecoded"].sum())
    runs["draft_prefill_ns"] = 0
    runs["begin_ns"] = runs["start_ns"] - runs["prefill_ns"] - 10**6
    runs["finish_ns"] = runs["end_ns"] + 10**6
    runs["outside_decodes"], runs["outside_tokens"] = 1, runs["n_prompt"]
    runs["window_decodes"] = made
    runs["window_tokens"] = runs["window_outputs"] = runs["run"].map(per_run["width"].sum())
    runs["beside_outside_tokens"] = runs["beside_window_decodes"] = runs["beside_window_tokens"] = 0


@fault("tokens decoded before the window", LOOKUP, "outside")
def _(record: Record) -> None:
    _counted(record)
    runs = record.tables["runs"]
    runs.loc[record.mask("runs", "treatment"), "outside_tokens"] += 63


@fault("decodes inside the window that no round has", LOOKUP, "decoded")
def _(record: Record) -> None:
    _counted(record)
    runs = record.tables["runs"]
    runs.loc[record.mask("runs", "treatment"), "window_decodes"] += 9


@fault("more tokens than rows of logits", LOOKUP, "decoded")
def _(record: Record) -> None:
    _counted(record)
    record.tables["runs"].loc[record.mask("runs", "treatment"), "window_outputs"] = 20


@fault("half a second of a run is in no account", LOOKUP, "account")
def _(record: Record) -> None:
    _counted(record)
    record.tables["runs"].loc[record.mask("runs", "treatment"), "begin_ns"] -= 5 * 10**8


@fault("a position that the baseline never says", LOOKUP, "compared")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    ledger.loc[record.mask("ledger", "treatment") & (ledger["position"] == 63), "position"] = 64


@fault("counted draws of a distribution that does not sum to one", DRAWN, "records")
def _(record: Record) -> None:
    _draws_counted(record, 0.3, 0.3)


def _draws_counted(record: Record, *chances: float) -> None:
    """Tokens of a group with these chances."""
    record.tables["counts"] = pd.DataFrame(
        [("treatment", "p", 0, 1, "", 1, 5 - place, 10, chance, chance) for place, chance in enumerate(chances)],
        columns=["arm", "prompt", "group", "position", "prefix", "tested", "token", "count", "probability", "moved"],
    )


def _with_carry(record: Record) -> None:
    """The first turn of the last prompt cold, again and in the end, as a sound method would do it."""
    runs = record.tables["runs"]
    own = runs[(runs["arm"] == "treatment") & (runs["block"] == runs["block"].max())].iloc[0]
    first, last = int(runs["start_ns"].min()), int(runs["end_ns"].max())
    length = int(own["end_ns"] - own["start_ns"]) + 10**9
    places = ((0, first - 2 * length), (1, first - length), (len(runs) + 2, last + 10**9))
    copies = {name: [] for name in ("runs", "rounds", "ledger", "draws")}
    for order, (number, start) in enumerate(places):
        for name, found in copies.items():
            rows = record.tables[name][record.tables[name]["run"] == own["run"]].assign(run=number)
            moved = [column for column in ("start_ns", "end_ns", "t_ns") if column in rows]
            rows[moved] += start - int(own["start_ns"])
            if name == "runs":
                rows = rows.assign(arm="carry", block=int(runs["block"].max()) + 1, order=order)
            found.append(rows)
    for name, found in copies.items():
        table = record.tables[name].assign(run=record.tables[name]["run"] + 2)
        record.tables[name] = pd.concat([*found[:2], table, found[2]], ignore_index=True)


@fault("the carried prompt drafts more the second time", LOOKUP, "carry")
def _(record: Record) -> None:
    _with_carry(record)
    rounds = record.tables["rounds"]
    rounds.loc[rounds.index[rounds["run"] == 1][0], ["drafted", "width"]] += 1


@fault("the carried prompt is decoded twice only", LOOKUP, "seeds")
def _(record: Record) -> None:
    _with_carry(record)
    for name in ("runs", "rounds", "ledger", "draws"):
        record.tables[name] = record.tables[name][record.tables[name]["run"] != 1]


@fault("the carried prompt has a seed of its own", LOOKUP, "seeds")
def _(record: Record) -> None:
    _with_carry(record)
    runs = record.tables["runs"]
    runs.loc[runs["arm"] == "carry", "seed"] = 77


# Rows that no class would take.


@fault("a run ends before it starts", LOOKUP, "rows")
def _(record: Record) -> None:
    record.tables["runs"].loc[3, "end_ns"] = 5


@fault("rounds of several runs lie among each other", LOOKUP, "rows")
def _(record: Record) -> None:
    record.tables["rounds"] = record.tables["rounds"].sort_values("round", kind="stable")


@fault("the prefill's token is one of a round", LOOKUP, "rows")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    ledger.loc[ledger.index[ledger["source"] == "prefill"][4], "round"] = 0


@fault("a collision probability above 1", DRAWN, "rows")
def _(record: Record) -> None:
    record.tables["draws"].loc[3, "collision"] = 1.5


@fault("a step that is settled three times", PROFILE, "rows")
def _(record: Record) -> None:
    record.tables["steps"]["settled"] = 3


@fault("counted draws with a probability of two", DRAWN, "rows")
def _(record: Record) -> None:
    _draws_counted(record, 2.0, -1.0)


@fault("the treatment's context is of another build", LOOKUP, "commit")
def _(record: Record) -> None:
    for facts in record.facts["engine"].values():
        facts["build"] = "abcdef0"


@fault("the build and the commit of the provenance are not one", LOOKUP, "commit")
def _(record: Record) -> None:
    record.env["engine"]["llama_cpp_commit"] = "fedcba987"
    record.facts["engine"]["treatment"]["build"] = ""


@fault("one run of a block is about another prompt", LOOKUP, "blocks")
def _(record: Record) -> None:
    record.tables["runs"].loc[3, "prompt"] = "repeat_days"


@fault("a draw of a round that there is not", LOOKUP, "draws")
def _(record: Record) -> None:
    draws = record.tables["draws"]
    draws.loc[draws.index[-1], "round"] = 500


@fault("a token of a round that there is not", LOOKUP, "emits")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    ledger.loc[ledger.index[-1], "round"] = 500


@fault("one answer graded twice", H200, "grades")
def _(record: Record) -> None:
    record.facts["lossless"].append(dict(record.facts["lossless"][0]))


@fault("a profile without a step", PROFILE, "passes")
def _(record: Record) -> None:
    del record.tables["steps"]


@fault("one token of one sequence costs five times as much in the other layout", PROFILE, "agreement")
def _(record: Record) -> None:
    steps = record.tables["steps"]
    other = steps[steps["width"] == 1].assign(layout="tokens")
    other["decode_ns"] *= 5
    record.tables["steps"] = pd.concat([steps, other])


# Files and tables.


@fault("a nan in a column of whole numbers", LOOKUP, "damaged", "damaged")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs["n_predict"] = runs["n_predict"].astype(object)
    runs.loc[0, "n_predict"] = "nan"


@fault("a number that no integer holds", LOOKUP, "damaged", "damaged")
def _(record: Record) -> None:
    record.tables["ledger"]["token"] = record.tables["ledger"]["token"].astype(object)
    record.tables["ledger"].loc[0, "token"] = "1" + 30 * "0"


@fault("no rounds", LOOKUP, "records")
def _(record: Record) -> None:
    del record.tables["rounds"]


@fault("no runs", LOOKUP, "records")
def _(record: Record) -> None:
    del record.tables["runs"]


@fault("no ledger", LOOKUP, "records")
def _(record: Record) -> None:
    del record.tables["ledger"]


@fault("a cell that says done and has nothing", LOOKUP, "records")
def _(record: Record) -> None:
    record.tables.clear()


@fault("an unknown arm", LOOKUP, "rows")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs["arm"] = runs["arm"].replace({"again": "best"})


@fault("an unknown source of a token", LOOKUP, "rows")
def _(record: Record) -> None:
    record.tables["ledger"].loc[9, "source"] = "certain"


@fault("a position below 0", LOOKUP, "rows")
def _(record: Record) -> None:
    record.tables["ledger"].loc[9, "position"] = -4


@fault("one run stored twice", LOOKUP, "records")
def _(record: Record) -> None:
    record.tables["runs"] = pd.concat([record.tables["runs"], record.tables["runs"].iloc[:1]])


# Profiles.


@fault("a width of a profile is ten times as quick as memory allows", PROFILE, "bound")
def _(record: Record) -> None:
    steps = record.tables["steps"]
    steps.loc[steps["width"] == 2, "decode_ns"] = (steps["decode_ns"] / 100).astype("int64")


@fault("a pass of a profile is left out", PROFILE, "passes")
def _(record: Record) -> None:
    steps = record.tables["steps"]
    record.tables["steps"] = steps[steps["repeat"] > 0]


@fault("a width is left out of a pass", PROFILE, "passes")
def _(record: Record) -> None:
    steps = record.tables["steps"]
    record.tables["steps"] = steps[~((steps["repeat"] == 1) & (steps["width"] == 2))]


def _slower_passes(record: Record, widths: set[int]) -> None:
    steps = record.tables["steps"]
    half = int(steps["repeat"].max()) // 2
    steps.loc[steps["width"].isin(widths) & (steps["repeat"] <= half), "decode_ns"] *= 20


@fault("half of the passes of one width are twenty times as slow", PROFILE, "steady", "warning")
def _(record: Record) -> None:
    _slower_passes(record, {2})


@fault("half of the passes of all widths are twenty times as slow", PROFILE, "agreement")
def _(record: Record) -> None:
    _slower_passes(record, set(range(64)))


@fault("a step of no time", PROFILE, "rows")
def _(record: Record) -> None:
    record.tables["steps"].loc[0, "decode_ns"] = 0


@fault("steps of a layout that there is not", PROFILE, "rows")
def _(record: Record) -> None:
    record.tables["steps"]["layout"] = "rows"


@fault("a profile under another id", PROFILE, "id")
def _(record: Record) -> None:
    record.cell = "fedcba987654"
