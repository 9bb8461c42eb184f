"""Texts that were decoded untimed, against what was configured and what a decode can give. It looks at no time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
        if tokens > rows or min(rounds, tokens) < 1:
            return f"the untimed text '{one['prompt']}' has {tokens} tokens of {rows} rows in {rounds} rounds"
    return None


def _wanted(config: Mapping[str, Any]) -> list[str]:
    """Names of the prompts that the configuration asks for."""
    measure, items = config.get("measure") or {}, (config.get("prompts") or {}).get("items") or []
    count, first = int(measure.get("texts") or 0), int(measure.get("per_class") or 0)
    classes = measure.get("classes") or sorted({str(item["class"]) for item in items})
    pools = ([str(item["id"]) for item in items if item["class"] == kind] for kind in classes)
    return [name for pool in pools for name in pool[first : first + count]]
