"""What servers said of their answers, against the runs and tokens that were stored of them. It looks at no ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.invariants.inputs import not_its_files
from bench.judge.measure.served import BY_TEXT, compared_by
from bench.judge.measure.tokens import arrays, owners

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

Columns = dict[str, np.ndarray]
SLACK_MS = 5.0
"""By which a server's own time may be longer than a client's, whose clock is another."""


def difference_is_told(case: Case) -> str | None:
    """What is on trial in words and as a value, and both servers as env.json describes them."""
    treatment, env = case.cell.config.get("treatment") or {}, case.cell.env
    values, told = treatment.get("engine") or {}, case.difference
    if not values or ", ".join(values) != told.get("key"):
        listed = ", ".join(values) or "nothing"
        return f"cell.yaml says that {told.get('key') or 'nothing'} is on trial, and lists {listed}"
    base = (case.cell.config.get("engine") or {}).get("server")
    for side, file, wanted in (("engine", env.get("engine"), base),
                               ("treatment", env.get("treatment"), values.get("server", base))):  # fmt: skip
        named = str((file or {}).get("server") or "")
        if not wanted or not named.startswith(str(wanted)):
            return f"{wanted or 'no server'} is an arm by cell.yaml, and env.json ({side}) describes {named or 'none'}"
        if fault := not_its_files(file or {}):
            return fault
    return None


def requests_are_told(case: Case) -> str | None:
    """Each answer of each run has one row, with as many tokens and the window that the run's own columns have."""
    table, rows = case.runs, arrays(case.cell.served)
    owner = owners(table.run, rows["run"])
    asked = np.array([prompt.count("+") + 1 for prompt in table.prompt.tolist()])
    found = np.bincount(owner, minlength=len(table.run))
    if (wrong := np.flatnonzero(found != asked)).size:
        at = wrong[0]
        return f"run {table.run[at]} ({table.arm[at]}) has {found[at]} answers told of, and {asked[at]} prompts"
    told = np.bincount(owner, weights=rows["told"], minlength=len(table.run)).astype(np.int64)
    made = table.tokens.distinct + table.tokens.first
    if (wrong := np.flatnonzero(told != made)).size:
        at = wrong[0]
        return f"run {table.run[at]} ({table.arm[at]}) has {made[at]} tokens, and its server counts {told[at]}"
    return _windows(case, rows, owner)


def _windows(case: Case, rows: Columns, owner: np.ndarray) -> str | None:
    table, runs = case.runs, arrays(case.cell.runs)
    size, most = len(table.run), np.iinfo(np.int64).max
    sent, first = np.full(size, most), np.full(size, most)
    last, finish = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for fold, kept, name in ((np.minimum, sent, "sent_ns"), (np.minimum, first, "first_ns"),
                             (np.maximum, last, "last_ns"), (np.maximum, finish, "finish_ns")):  # fmt: skip
        fold.at(kept, owner, rows[name].astype(np.int64))
    own = {name: runs[name].astype(np.int64) for name in ("begin_ns", "start_ns", "end_ns", "finish_ns", "prefill_ns")}
    wrong = (sent != own["begin_ns"]) | (first != own["start_ns"]) | (last != own["end_ns"])
    wrong |= (finish != own["finish_ns"]) | (own["prefill_ns"] != first - sent)
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"run {table.run[at]} ({table.arm[at]}) has another window than its answers; {int(wrong.sum())} runs in "
            "all")  # fmt: skip


def own_times_fit(case: Case) -> str | None:
    """A server's own times lie within the time that its client waited, where one request was served at a time."""
    rows = arrays(case.cell.served)
    waited = (rows["finish_ns"] - rows["sent_ns"]) * 1e-6
    for name in ("prompt_ms", "answer_ms"):
        wrong = np.isfinite(rows[name]) & ((rows[name] < 0) | (rows[name] > waited + SLACK_MS))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            return (f"the server of run {rows['run'][at]} tells {rows[name][at]:.1f} ms, and its client waited "
                    f"{waited[at]:.1f} ms in all")  # fmt: skip
    return None


def counts_fit(case: Case) -> str | None:
    """What servers count: hardly more guesses right than tokens, the prompt that its runs have, as much of
    it evaluated, and each fresh start once.
    """
    table, rows = case.runs, arrays(case.cell.served)
    owner = owners(table.run, rows["run"]).astype(np.int64)
    known = rows["n_prompt"] >= 0
    prompts, cached = (np.bincount(owner, weights=np.where(known, rows[name], 0), minlength=len(table.run))
                       for name in ("n_prompt", "n_cached"))  # fmt: skip
    evaluated = prompts - np.maximum(cached, 0)
    whole = np.bincount(owner, weights=~known, minlength=len(table.run)) == 0
    for wrong, what in (
        # What it accepts behind the end of an answer is cut off, and counted.
        (rows["accepted"] > 2 * np.maximum(rows["told"], 1), "accepts twice as many guesses as it says tokens"),
        ((rows["events"] > rows["told"]) | (rows["events"] < 1), "sends more or fewer pieces than tokens"),
        (known & (rows["n_cached"] > rows["n_prompt"]), "has more of its prompt cached than there is"),
        (whole[owner] & (prompts != table.n_prompt)[owner], "counts another prompt than its run"),
        ((whole & (table.n_prompt_evaluated >= 0) & (evaluated != table.n_prompt_evaluated))[owner],
         "evaluates another part of its prompt than its run"),
    ):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            return f"the server of run {rows['run'][at]} {what}; {int(wrong.sum())} answers in all"
    return _started(case, rows, owner)


def _started(case: Case, rows: Columns, owner: np.ndarray) -> str | None:
    if case.cell.facts.get("sides") != "fresh":
        return None
    table = case.runs
    plain = table.any_of(("baseline", "again"))[owner]
    for mine in (plain, ~plain & ~table.of("kept")[owner]):
        starts = np.unique(np.stack([rows["starts"][mine], owner[mine]]), axis=1)[0]
        if (starts >= 0).all() and len(np.unique(starts)) < len(starts):
            return "each run has a fresh server, and two of them tell of one start"
    return None


def texts_are_the_hashes(case: Case) -> str | None:
    """Equal ids have equal texts, and what was said of two texts is what their hashes say."""
    table, rows = case.runs, arrays(case.cell.served)
    owner = owners(table.run, rows["run"])
    base = {(int(table.block[at]), int(table.seed[at]), int(stream)): text for at, stream, text in zip(
        owner, rows["stream"], rows["text"].tolist(), strict=True) if table.of("baseline")[at]}  # fmt: skip
    stored = {(row["arm"], row["prompt"], int(row["stream"]), int(row["seed"])): row
              for row in case.cell.facts.get("lossless") or []}  # fmt: skip
    for at, stream, text in zip(owner, rows["stream"], rows["text"].tolist(), strict=True):
        wanted = base.get((int(table.block[at]), int(table.seed[at]), int(stream)))
        parts = str(table.prompt[at]).split("+")
        row = stored.get((str(table.arm[at]), parts[int(stream)], int(stream), int(table.seed[at])))
        if wanted is None or row is None:
            continue
        about = f"the answer to '{row['prompt']}' ({row['arm']}, seed {row['seed']})"
        if bool(row.get("same_text")) != (text == wanted):
            return f"{about} is not the text that it is told to be"
        if row.get("by") != BY_TEXT and row.get("first_difference") is None and text != wanted:
            return f"{about} has equal ids and another text"
    return None


def repeats_repeat(case: Case) -> str | None:
    """One request at a time on a fresh server: an arm says the same each time, by its text; drawn with one seed."""
    if int(case.cell.config.get("streams") or 1) > 1 or case.cell.facts.get("sides") != "fresh":
        return None
    table, rows = case.runs, arrays(case.cell.served)
    owner = owners(table.run, rows["run"])
    first: dict[tuple[str, str, int], tuple[str, int]] = {}
    for at, text in zip(owner.tolist(), rows["text"].tolist(), strict=True):
        arm = str(table.arm[at])
        if arm == "kept":  # it may draft otherwise, and near ties fall otherwise then
            continue
        seed = int(table.seed[at]) if case.temperature else 0
        key = "treatment" if arm == "carry" else arm, str(table.prompt[at]), seed
        before, run = first.setdefault(key, (text, int(table.run[at])))
        if before != text:
            return (f"run {table.run[at]} ({arm}) says another text than run {run} for the same prompt and seed, "
                    "on a fresh server: it is not repeatable")  # fmt: skip
    return None


def compared_as_told(case: Case) -> str | None:
    """Answers without ids have no ledger, and such with them have one."""
    by, stored = compared_by(case), len(case.cell.ledger["run"])
    if (by == BY_TEXT) == bool(stored):
        return f"answers were compared by {by}, and {stored} tokens are stored"
    return None
