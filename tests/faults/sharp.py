"""Edits of what a cell stores of the grade on F16 weights; its manifest is written again, so that it tells nothing."""

from __future__ import annotations

from tests.faults.records import fault
from tests.faults.stored import Record

SHARP = "b3ace169c1b2"


@fault("the grade on F16 weights is left out", SHARP, "f16")
def _(record: Record) -> None:
    del record.facts["sharp"], record.tables["sharp"]


@fault("what was said on F16 weights is left out", SHARP, "f16")
def _(record: Record) -> None:
    del record.tables["sharp"]


@fault("a prompt is left out on F16 weights", SHARP, "f16")
def _(record: Record) -> None:
    rows = record.tables["sharp"]
    record.tables["sharp"] = rows[rows["prompt"] != rows["prompt"].iloc[0]]


@fault("plain decoding is left out on F16 weights", SHARP, "f16")
def _(record: Record) -> None:
    rows = record.tables["sharp"]
    record.tables["sharp"] = rows[rows["arm"] == "treatment"]


@fault("the treatment's answers on F16 weights end early", SHARP, "f16")
def _(record: Record) -> None:
    rows = record.tables["sharp"]
    record.tables["sharp"] = rows[(rows["arm"] == "baseline") | (rows["position"] < 9)]


@fault("a token on F16 weights is another", SHARP, "f16")
def _(record: Record) -> None:
    rows = record.tables["sharp"]
    rows.loc[rows.index[rows["arm"] == "treatment"][7], "token"] += 1


@fault("a token on F16 weights is beyond the vocabulary", SHARP, "f16")
def _(record: Record) -> None:
    record.tables["sharp"].loc[record.tables["sharp"]["position"] == 3, "token"] = 10**7


@fault("a position on F16 weights is missing", SHARP, "f16")
def _(record: Record) -> None:
    rows = record.tables["sharp"]
    record.tables["sharp"] = rows[rows["position"] != 4]


@fault("answers on F16 weights have other seeds", SHARP, "f16")
def _(record: Record) -> None:
    record.tables["sharp"]["seed"] += 1
    for row in record.facts["sharp"]["lossless"]:
        row["seed"] += 1


@fault("plain decoding on F16 weights has another seed than the treatment", SHARP, "f16")
def _(record: Record) -> None:
    rows = record.tables["sharp"]
    rows.loc[rows["arm"] == "baseline", "seed"] = rows["seed"].max()


@fault("a difference on F16 weights that nobody said", SHARP, "f16")
def _(record: Record) -> None:
    record.facts["sharp"]["lossless"][0]["first_difference"] = {
        "position": 3, "token_baseline": 1, "token_arm": 2, "gap_baseline": 1e-9, "gap_arm": 1e-9,
        "quantity": "logit_gap"}  # fmt: skip


@fault("an answer on F16 weights is graded twice", SHARP, "f16")
def _(record: Record) -> None:
    record.facts["sharp"]["lossless"].append(dict(record.facts["sharp"]["lossless"][0]))


@fault("the F16 file is the cell's own", SHARP, "f16")
def _(record: Record) -> None:
    record.facts["sharp"]["sha256"] = record.facts["model"]["sha256"]


@fault("the F16 file has no digest", SHARP, "f16")
def _(record: Record) -> None:
    record.facts["sharp"]["sha256"] = ""


@fault("the F16 file is smaller than its weights", SHARP, "f16")
def _(record: Record) -> None:
    record.facts["sharp"]["bytes"] = 10**6


@fault("the F16 weights are quantised", SHARP, "f16")
def _(record: Record) -> None:
    record.facts["sharp"]["type"] = "Q8_0"


@fault("nobody measured the noise on F16 weights", SHARP, "f16")
def _(record: Record) -> None:
    record.facts["sharp"]["noise"] = {}


@fault("quantised weights are said to be F16 already", SHARP, "f16")
def _(record: Record) -> None:
    del record.tables["sharp"]
    record.facts["sharp"] = {"state": "same", "type": "F16", "sha256": record.facts["model"]["sha256"]}


@fault("F16 weights that would fit are left out for want of memory", SHARP, "f16")
def _(record: Record) -> None:
    del record.tables["sharp"]
    record.facts["sharp"] = {"state": "left out", "needed_bytes": 10**8, "free_bytes": 10**9,
                             "reason": "F16 weights and their caches take 0.10 GB, 0.01 GB are free"}  # fmt: skip


@fault("F16 weights are left out, and nothing says why", SHARP, "f16")
def _(record: Record) -> None:
    del record.tables["sharp"]
    record.facts["sharp"] = {"state": "left out", "reason": ""}


@fault("F16 weights are left out for a reason", SHARP, "sharp", "warning")
def _(record: Record) -> None:
    del record.tables["sharp"]
    record.facts["sharp"] = {"state": "left out", "needed_bytes": 10**9, "free_bytes": 10**8,
                             "reason": "F16 weights and their caches take 1.00 GB, 0.10 GB are free"}  # fmt: skip


@fault("a grade on F16 weights that was not asked for", SHARP, "f16")
def _(record: Record) -> None:
    record.config["measure"]["sharp"] = False


@fault("a token on F16 weights of an arm that there is not", SHARP, "rows")
def _(record: Record) -> None:
    record.tables["sharp"].loc[3, "arm"] = "best"
