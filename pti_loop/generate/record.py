"""The record of a run of `generate`: a folder of tables that `python -m bench audit` reads. It computes no rate."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pti_loop.ledger import Emit, Round
from pti_loop.pti_context import PtiContext

RUN = ("run", "arm", "prompt", "n_prompt", "n_prompt_evaluated", "n_predict", "seed", "prefill_ns", "decode_window_ns",
       "start_ns", "end_ns")  # fmt: skip


@dataclass(frozen=True)
class Arm:
    """One run: `name` is `treatment`, or `baseline` for the plain decoding beside it."""

    name: str
    pti: PtiContext
    facts: Mapping[str, Any]


def write(folder: Path, arms: Sequence[Arm], settings: Mapping[str, Any]) -> None:
    """Write the folder, whole or not at all. Raises OSError."""
    partial = folder.with_name(f".{folder.name}.{os.getpid()}")
    partial.mkdir(parents=True)
    try:
        emits, rounds = [], []
        for number, arm in enumerate(arms):
            arm.pti.trace.run = number
            emits += arm.pti.trace.emits()
            rounds += arm.pti.trace.rounds()
        _table(partial / "ledger.csv", [one.name for one in fields(Emit)], emits)
        _table(partial / "rounds.csv", [one.name for one in fields(Round)], rounds)
        with (partial / "runs.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, RUN, lineterminator="\n")
            writer.writeheader()
            writer.writerows(_run(number, arm, settings["seed"]) for number, arm in enumerate(arms))
        # JSON is YAML, too.
        (partial / "cell.yaml").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        engine = {arm.name: dict(arm.facts) for arm in arms}
        (partial / "facts.json").write_text(json.dumps({"engine": engine}, indent=1) + "\n", encoding="utf-8")
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _table(path: Path, names: Sequence[str], rows: Iterable[Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in rows)


def _run(number: int, arm: Arm, seed: int) -> dict[str, Any]:
    pti, trace = arm.pti, arm.pti.trace
    prompts = "+".join(f"p{place + 1}" for place in range(len(pti.prompts)))
    return {
        "run": number, "arm": arm.name, "prompt": prompts, "n_prompt": sum(map(len, pti.prompts)),
        "n_prompt_evaluated": trace.n_prompt_evaluated, "n_predict": pti.settings.n_predict, "seed": seed,
        "prefill_ns": trace.prefill_ns, "decode_window_ns": trace.window_ns, "start_ns": trace.start_ns or 0,
        "end_ns": trace.end_ns,
    }  # fmt: skip
