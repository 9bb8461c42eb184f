"""More edits of stored cells, each of one file or one kind of column; manifests are written again where there are."""

from __future__ import annotations

import pandas as pd

from tests.faults.records import DRAWN, H200, HONEST, LOOKUP, MTP, PACKED, PROFILE, PUBLISHED, fault
from tests.faults.sharp import SHARP
from tests.faults.stored import Record

H200_APART = "71eae62615d6"


# What the contexts counted.


@fault("a run is over before its window is", SHARP, "account")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs["finish_ns"] = runs["end_ns"] - 10**6


@fault("a run begins after its window opened", SHARP, "account")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[record.mask("runs", "treatment"), "begin_ns"] = runs["start_ns"] + 10**6


@fault("the treatment's prefill takes no time", SHARP, "account")
def _(record: Record) -> None:
    record.tables["runs"].loc[record.mask("runs", "treatment"), "prefill_ns"] = 0


@fault("fewer tokens went through the context than its rounds have rows", SHARP, "decoded")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[record.mask("runs", "treatment"), "window_tokens"] = 3


@fault("more outputs than tokens", SHARP, "decoded")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[record.mask("runs", "treatment"), "window_outputs"] += 400


@fault("plain decoding never evaluates its prompt", SHARP, "outside")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[record.mask("runs", "baseline"), ["outside_decodes", "outside_tokens"]] = 0


@fault("the treatment restored half of its prompt, and nothing was to be", SHARP, "depth")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    mine, half = record.mask("runs", "treatment"), runs["n_prompt"] // 2
    runs["n_prompt_restored"] = half.where(mine, 0)
    runs["restore_ns"] = mine * 10**6
    runs.loc[mine, "outside_tokens"] -= half
    runs.loc[mine, "n_prompt_evaluated"] -= half


@fault("the prompt of the treatment is shorter", LOOKUP, "prompts")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[record.mask("runs", "treatment"), ["n_prompt", "n_prompt_evaluated"]] = 1


@fault("prompts are longer than their texts", LOOKUP, "prompts")
def _(record: Record) -> None:
    record.tables["runs"][["n_prompt", "n_prompt_evaluated"]] += 5000


@fault("the carried prompt is left out", SHARP, "carry")
def _(record: Record) -> None:
    record.drop("carry")
    for name in ("runs", "rounds", "ledger", "draws"):
        record.tables[name]["run"] -= 2


@fault("sequential decodes that no context made", SHARP, "decoded")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    rounds.loc[record.mask("rounds", "treatment"), "redecoded"] += 1


# Blocks, orders, classes.


@fault("the order of a block says otherwise than its times", LOOKUP, "sequence")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    most = runs.groupby("block")["order"].transform("max")
    mine = runs["block"] == 2
    runs.loc[mine, "order"] = (runs["order"] + most // 2)[mine] % (most[mine] + 1)


@fault("runs of two blocks are exchanged", LOOKUP, "blocks")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs["block"] = runs["block"].replace({1: 2, 2: 1})
    runs.loc[runs["order"] > 0, "block"] = runs["block"].replace({1: 2, 2: 1})


@fault("quick prompts are called another class", LOOKUP, "blocks")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[runs["block"] == 1, "prompt_class"] = "code_edit"


@fault("a treatment's run has the seed of the other turn", DRAWN, "seeds")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    mine = runs.index[record.mask("runs", "treatment")][:2]
    runs.loc[mine, "seed"] = runs.loc[mine[1], "seed"]


@fault("each token stands twice in the ledger", LOOKUP, "emitted")
def _(record: Record) -> None:
    record.tables["ledger"] = record.tables["ledger"].loc[record.tables["ledger"].index.repeat(2)]


@fault("slow rounds are called the start", LOOKUP, "start")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    slow = rounds["total_ns"] > rounds["total_ns"].quantile(0.8)
    rounds.loc[record.mask("rounds", "treatment") & slow, "phase"] = "startup"


@fault("the first half of a method without a start is its start", LOOKUP, "start")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    rounds.loc[record.mask("rounds", "treatment") & (rounds["round"] < 9), "phase"] = "startup"


@fault("guesses behind the last one that was made", LOOKUP, "draws")
def _(record: Record) -> None:
    draws = record.tables["draws"]
    draws.loc[record.mask("draws", "treatment"), "depth"] += 40


@fault("a token that the vocabulary has not, in every arm", LOOKUP, "vocabulary")
def _(record: Record) -> None:
    for name, columns in {"ledger": ["token"], "draws": ["guess", "drawn"]}.items():
        record.tables[name][columns] += 10**7


@fault("an answer's second token is the prefill's too", LOOKUP, "rows")
def _(record: Record) -> None:
    ledger = record.tables["ledger"]
    ledger.loc[ledger["position"] == 1, ["source", "round"]] = ["prefill", -1]


# Engines.


@fault("plain decoding ran on the CPU, the treatment on the GPU", H200, "engine")
def _(record: Record) -> None:
    record.facts["engine"]["baseline"]["layers_offloaded"] = 0


@fault("plain decoding had another cache type", LOOKUP, "engine")
def _(record: Record) -> None:
    record.facts["engine"]["baseline"]["type_k"] = "f32"


@fault("plain decoding had one thread", LOOKUP, "engine")
def _(record: Record) -> None:
    record.facts["engine"]["baseline"]["threads"] = 1


@fault("both arms had other threads than configured", LOOKUP, "settings")
def _(record: Record) -> None:
    for facts in record.facts["engine"].values():
        facts["threads"] = 64


@fault("both arms had another cache type than configured", PACKED, "settings")
def _(record: Record) -> None:
    for facts in record.facts["engine"].values():
        facts["type_v"] = "q8_0"


@fault("the treatment's context held one sequence of four, so that no solo control was needed", PUBLISHED, "settings")
def _(record: Record) -> None:
    record.facts["engine"]["treatment"]["n_seq_max"] = 1
    record.drop("solo")


@fault("plain decoding's context held four sequences", HONEST, "settings")
def _(record: Record) -> None:
    record.facts["engine"]["baseline"]["n_seq_max"] = 4


# What was measured beside the runs.


@fault("the memory reads ten times as fast as any reading of it", LOOKUP, "once")
def _(record: Record) -> None:
    record.facts["bandwidth"]["read_gb_s"] *= 10


@fault("a step reads more bytes than the file has", LOOKUP, "model")
def _(record: Record) -> None:
    record.facts["model"]["step_bytes"] = record.facts["model"]["tensor_bytes"] * 3


@fault("the noise excuses fifty logits", H200_APART, "noise")
def _(record: Record) -> None:
    record.facts["noise"]["logit_gap"] = 50.0


@fault("replays are of more positions than the answers have", H200_APART, "replays")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        if row.get("teacher_forced"):
            row["teacher_forced"]["positions"] = 10**6


@fault("replays disagree more often than they have positions", H200_APART, "replays")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        if row.get("teacher_forced"):
            row["teacher_forced"]["disagreements"] = 10**6


@fault("the noise was measured at more disagreements than positions", H200_APART, "replays")
def _(record: Record) -> None:
    record.facts["noise"]["disagreements"] = 10**6


@fault("the replay disagrees nowhere, and the arm's replay says the arm's token", H200_APART, "replays")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        if row.get("teacher_forced"):
            row["teacher_forced"] |= {"disagreements": 0, "worst_gap": 0.0}
            row["first_difference"]["gap_arm"] = 0.1


@fault("an answer is compared over fewer tokens than it has", LOOKUP, "replays")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        row["n"] = 2


@fault("the whole cell took less time than its runs", LOOKUP, "seconds")
def _(record: Record) -> None:
    record.status["seconds"] = 0.5


# Profiles.


@fault("width 1 was timed behind a long text, the others behind none", PROFILE, "passes")
def _(record: Record) -> None:
    steps = record.tables["steps"]
    steps["n_past"] = steps["n_past"].where(steps["width"] == 1, 1)


@fault("no step of a profile is settled", PROFILE, "passes")
def _(record: Record) -> None:
    record.tables["steps"]["settled"] = 0


@fault("passes of a profile are one pass under several numbers", PROFILE, "passes")
def _(record: Record) -> None:
    steps = record.tables["steps"]
    first = steps[steps["repeat"] == 1]
    record.tables["steps"] = pd.concat([first.assign(repeat=number) for number in sorted(set(steps["repeat"]))])


@fault("one decode of two rows is told as one of four", MTP, "emitted")
def _(record: Record) -> None:
    rounds = record.tables["rounds"]
    mask = record.mask("rounds", "treatment")
    rounds.loc[mask, ["drafted", "verified"]] = 3


# How blocks and runs went on.


@fault("blocks ended as if a rule had been asked for", LOOKUP, "stopping")
def _(record: Record) -> None:
    record.facts["stopping"] = {"why": "decided", "passes": []}


@fault("texts that nobody asked for were decoded untimed", LOOKUP, "texts")
def _(record: Record) -> None:
    record.facts["untimed"] = [{"prompt": "another", "class": "prose", "tokens": 63, "rounds": [
        {"width": 4, "redecoded": 0, "count": 20}]}]  # fmt: skip


@fault("runs took turns that were not configured", LOOKUP, "turns")
def _(record: Record) -> None:
    record.facts["turns"] = {"chunk": 8, "arms": ["baseline", "treatment"]}


@fault("a trial names another setting than the one that it lists", LOOKUP, "trial")
def _(record: Record) -> None:
    record.config["kind"] = "trial"
    told = {"key": "type_k", "was": "f16", "became": "q8_0", "words": "q8_0 keys"}
    record.config["treatment"] = {"engine": {"threads": 4}, "declaration": told}
