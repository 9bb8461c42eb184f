"""What the columns of a contrast say against its method: each is arithmetic on what is stored, and needs no trust.

It knows no method. A sound cell has none of these at any temperature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PLAIN = ("baseline", "again", "solo")


def told(tables: Mapping[str, Sequence[Any]]) -> dict[str, set[str]]:
    """Names of the invariants that do not hold, with the arms whose runs show it."""
    found: dict[str, set[str]] = {}
    for run in tables["runs"]:
        rows = {name: [row for row in tables[name] if row.run == run.run] for name in ("ledger", "rounds")}
        for name in _of_run(run, rows["ledger"], rows["rounds"]):
            found.setdefault(name, set()).add(run.arm)
    if len(_carried(tables)) != 1:
        found["carry"] = {"carry"}
    return found


def _of_run(run: Any, ledger: Sequence[Any], rounds: Sequence[Any]) -> list[str]:
    said = {(row.stream, row.position) for row in ledger if row.source != "prefill"}
    confirmed = {(row.stream, row.position) for row in ledger if row.source == "verified"}
    answers = len(run.prompt.split("+"))
    faults = {
        "decodes outside the window": run.outside_tokens != run.n_prompt,
        "decodes beside, outside the window": run.beside_outside_tokens > run.n_prompt,
        "more confirmed tokens than rows of logits": len(confirmed) > run.window_outputs,
        "tokens that nothing confirms": bool(said - confirmed),
        "streams beyond the answers": len({row.stream for row in ledger}) != answers,
        "decodes that are in no round": sum(1 + row.redecoded for row in rounds) < run.window_decodes,
        "rounds without a decode": sum(1 + row.redecoded for row in rounds) > run.window_decodes,
        "time in no account": run.begin_ns + run.prefill_ns + run.draft_prefill_ns + run.decode_window_ns
        != run.finish_ns,
        "a token outside the run": any(not run.begin_ns <= row.t_ns <= run.finish_ns for row in ledger),
    }  # fmt: skip
    return [name for name, fault in faults.items() if fault]


def _carried(tables: Mapping[str, Sequence[Any]]) -> set[tuple[Any, ...]]:
    """What the runs of the carried prompt said and did; its own block's first replicate of the treatment too."""
    carried = [run for run in tables["runs"] if run.arm == "carry"]
    own = [run for run in tables["runs"] if run.arm == "treatment" and (run.prompt, run.seed) == (
        carried[0].prompt, carried[0].seed)]  # fmt: skip
    found = set()
    for run in [*carried, *own]:
        rounds = [row for row in tables["rounds"] if row.run == run.run]
        text = tuple((row.stream, row.position, row.token) for row in tables["ledger"] if row.run == run.run)
        counts = tuple(sum(getattr(row, name) for row in rounds) for name in ("drafted", "verified", "accepted"))
        found.add((text, len(rounds), *counts, run.window_decodes, run.window_tokens, run.beside_window_tokens))
    return found
