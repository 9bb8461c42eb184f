"""Texts that were decoded untimed, against what was configured and what a decode can give. It looks at no time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.judge.invariants.beside import untimed_widths
from bench.records.arms import PLANTED

ALWAYS = 3
"""The first schema whose every contrast decodes where no row is alone."""

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


def untimed_as_configured(case: Case) -> str | None:
    """Further prompts behind the timed ones of their class, each to its full length, and no more than rows decoded."""
    config, told = case.cell.config, case.cell.facts.get("untimed") or []
    wanted = _wanted(config)
    if [str(one.get("prompt")) for one in told] != wanted:
        return f"{len(wanted)} further texts were configured, and {len(told)} are stored, or others"
    for one in told:
        counts = [(int(row["count"]), int(row["width"])) for row in one["rounds"]]
        rounds, rows = sum(count for count, _ in counts), sum(count * width for count, width in counts)
        tokens, full = int(one["tokens"]), int(config["n_predict"]) - 1
        if not case.arm.by_rounds and tokens != full and not (case.runs.ends and 0 < tokens < full):
            return f"the untimed text '{one['prompt']}' has {tokens} tokens, and {full} were asked for"
        widest = untimed_widths(case)
        if widest and any(int(row["width"]) > widest for row in one["rounds"]):
            return f"the untimed text '{one['prompt']}' has rounds of more than the {widest} rows of its method"
        if tokens > rows or min(rounds, tokens) < 1:
            return f"the untimed text '{one['prompt']}' has {tokens} tokens of {rows} rows in {rounds} rounds"
    return None


def padded_is_there(case: Case) -> str | None:
    """The untimed answers on contexts that decode no row alone: one a block with planted guesses, with its first seed.

    Only of methods that guess for one answer; records of before they were made have none.
    """
    config, told = case.cell.config, case.cell.facts.get("padded")
    if int(config.get("schema") or 0) < ALWAYS:
        return None
    if told is None:
        return "it does not tell what both arms say where neither decodes a row alone"
    table = case.runs
    planted = table.any_of(PLANTED)
    first = {int(block): int(table.seed[planted & (table.block == block)].min()) for block in set(table.block[planted])}
    wanted = sorted((str(table.prompt[table.block == block][0]), seed) for block, seed in first.items())
    wanted = wanted if case.arm.guesses and case.arm.answers == "one" else []
    found = sorted((str(one.get("prompt")), int(one.get("seed") or 0)) for one in told)
    if found != wanted:
        return f"{len(wanted)} answers were to be decoded where no row is alone, and {len(found)} are stored, or others"
    for one in told:
        n, first_difference, noise = int(one.get("n") or 0), one.get("first_difference"), one.get("noise")
        if not case.runs.ends and n != int(config["n_predict"]):
            return f"the answer to '{one['prompt']}' where no row is alone has {n} tokens"
        told = first_difference is not None
        widest = untimed_widths(case)
        if not 1 <= int(one.get("widest") or 0) <= (widest or 2**20):
            return f"the answer to '{one['prompt']}' where no row is alone has rounds of {one.get('widest')} rows"
        if told != (noise is not None) or (told and not 0 <= int(first_difference) < n):
            return f"the answer to '{one['prompt']}' where no row is alone differs at {first_difference} of {n} tokens"
    return None


def _wanted(config: Mapping[str, Any]) -> list[str]:
    """Names of the prompts that the configuration asks for."""
    measure, items = config.get("measure") or {}, (config.get("prompts") or {}).get("items") or []
    count, first = int(measure.get("texts") or 0), int(measure.get("per_class") or 0)
    classes = measure.get("classes") or sorted({str(item["class"]) for item in items})
    pools = ([str(item["id"]) for item in items if item["class"] == kind] for kind in classes)
    return [name for pool in pools for name in pool[first : first + count]]
