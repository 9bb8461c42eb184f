"""What was configured and what was measured once, against what the engine, the clock and the texts say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.invariants.pieces import machine_times
from bench.judge.measure.tokens import arrays

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

ASKED = ("type_k", "type_v", "threads", "kv_unified", "sampler")
"""Settings that a context has as they are asked for; others it may fit to its model or its memory."""
ROOM = 256
"""Tokens by which a context may be longer than it was asked for."""
SWITCHED = {"on": ("on", "enabled"), "off": ("off", "disabled")}
"""What a context says of a switch that was asked for."""
WIDENED = " as "
"""In the name of a quantization whose engine has caches of its own choice."""
SLACK = 1.001
PROBED = 3
"""The first schema whose every method that guesses for one answer tells how it forgets."""


def settings_as_configured(case: Case) -> str | None:
    """Plain decoding's contexts have the configured settings and one sequence, the treatment's hold its streams."""
    facts, config = case.cell.facts, case.cell.config
    engines, asked = facts.get("engine") or {}, config.get("engine") or {}
    if "schema" not in config or WIDENED in str((facts.get("model") or {}).get("quantization")):
        return None
    for arm in ("baseline", "again"):
        own = engines.get(arm) or {}
        for name in ASKED:
            if asked.get(name) and own.get(name) is not None and own[name] != asked[name]:
                return f"the context of {arm} has {name}={own[name]}, and {name}={asked[name]} was configured"
        if told := _fitted(arm, own, asked, int(config.get("depth") or 0)):
            return told
        if own.get("n_seq_max", 1) != 1:
            return f"the context of {arm} holds {own['n_seq_max']} sequences, and plain decoding's holds one"
    held, streams = (engines.get("treatment") or {}).get("n_seq_max"), int(config.get("streams") or 1)
    if held is not None and held < streams:
        return f"the treatment's context holds {held} sequences, and {streams} streams were decoded in it"
    return None


def _fitted(arm: str, own: Mapping[str, Any], asked: Mapping[str, Any], depth: int) -> str | None:
    """Settings that a context fits to its model: it is as long as was asked for, or a little longer, and no wider."""
    length, wanted = own.get("n_ctx"), asked.get("n_ctx")
    if length and wanted and not wanted + depth <= length < wanted + depth + ROOM:
        return f"the context of {arm} has {length} tokens, and n_ctx={wanted + depth} was configured"
    for name in ("n_batch", "n_ubatch"):
        if own.get(name) and asked.get(name) and own[name] != min(asked[name], length or asked[name]):
            return f"the context of {arm} has {name}={own[name]}, and {name}={asked[name]} was configured"
    switch, told = asked.get("flash_attn"), own.get("flash_attn")
    if switch in SWITCHED and told is not None and str(told) not in SWITCHED[switch]:
        return f"the context of {arm} has flash_attn={told}, and flash_attn={switch} was configured"
    if own.get("repack") is not None and own["repack"] != asked.get("repack", True):
        return f"the context of {arm} has repack={own['repack']}, and repack={asked.get('repack', True)} was configured"
    if asked.get("n_gpu_layers") == 0 and own.get("layers_offloaded"):
        return f"the context of {arm} has {own['layers_offloaded']} layers offloaded, and none was to be"
    return None


def rollback_was_seen(case: Case) -> str | None:
    """The way in which rejected tokens were forgotten passed its probe."""
    told = case.cell.facts.get("rollback") or {}
    used, tried = told.get("strategy"), told.get("tried")
    forgets = case.arm.guesses and case.arm.answers == "one" and int(case.cell.config.get("schema") or 0) >= PROBED
    if not used or not isinstance(tried, list) or not tried:
        return "rejected tokens were forgotten, and nothing tells how" if forgets else None
    for one in tried:
        if one.get("passed") and float(one.get("distance") or 0) > float(one.get("allowed") or 0):
            return (f"the probe of {one.get('strategy')} passed with {one.get('distance'):.3g} of "
                    f"{one.get('allowed'):.3g} that were allowed")  # fmt: skip
    if any(one.get("strategy") == used and one.get("passed") for one in tried):
        return None
    return f"rejected tokens were forgotten by {used}, which no probe saw restore the state"


def facts_fit(case: Case) -> str | None:
    """A bandwidth that is its quickest reading, of as many threads as decode where it is a processor's."""
    speed, threads = case.cell.facts.get("bandwidth") or {}, (case.cell.config.get("engine") or {}).get("threads")
    if speed.get("cache_bytes") and threads and speed.get("threads") not in (None, threads):
        return f"the memory was read by {speed['threads']} threads, and {threads} decode"
    read, repeats = speed.get("read_gb_s"), speed.get("repeats")
    if read and repeats and not max(repeats) / SLACK <= read <= max(repeats) * SLACK:
        return f"the memory is said to read {read:.1f} GB/s, and the quickest reading is {max(repeats):.1f}"
    middle = speed.get("median_gb_s")
    if middle and repeats and not min(repeats) / SLACK <= middle <= max(repeats) * SLACK:
        return f"the memory's median reading is said to be {middle:.1f} GB/s, and none is beyond {max(repeats):.1f}"
    return None


def seconds_cover_the_runs(case: Case) -> str | None:
    """The windows of all runs, and what lies between the first and the last, within the time that the cell took."""
    seconds = case.cell.status.get("seconds")
    if "schema" not in case.cell.config or not isinstance(seconds, (int, float)):
        return None
    inside = float(case.runs.window.sum())
    if inside > SLACK * seconds:
        return f"the windows of its runs are {inside:.1f} s long, and the whole cell took {seconds:.1f} s"
    start, end = machine_times(case)
    if (span := float(end.max() - start.min()) * 1e-9) > SLACK * seconds:
        return f"its last run ends {span:.1f} s after its first one starts, and the whole cell took {seconds:.1f} s"
    return None


def prompts_as_configured(case: Case) -> str | None:
    """Every run of a prompt has as many prompt tokens, behind the cell's depth no more than its text has bytes."""
    table, depth = case.runs, int(case.cell.config.get("depth") or 0)
    items = {str(item["id"]): item for item in (case.cell.config.get("prompts") or {}).get("items") or []}
    for prompt in np.unique(table.prompt).tolist():
        found = np.unique(table.n_prompt[table.prompt == prompt])
        if len(found) > 1:
            return f"'{prompt}' has {found[0]} prompt tokens in one run and {found[-1]} in another"
        texts = [items.get(part, {}).get("text") for part in prompt.split("+")]
        most = sum(len(text.encode()) + 1 for text in texts if isinstance(text, str))
        own = int(found[0]) - depth * len(texts)
        if all(isinstance(text, str) for text in texts) and not 0 < own <= most:
            return f"'{prompt}' has {own} prompt tokens{' of its own' if depth else ''}, and its text {most} bytes"
    return None


def tokens_of_the_vocabulary(case: Case) -> str | None:
    """No token id is beyond the model's vocabulary, where the record tells how large that is."""
    size = int((case.cell.facts.get("model") or {}).get("n_vocab") or 0)
    for name, columns in (("ledger", ("token",)), ("draws", ("guess", "drawn"))):
        table = arrays(getattr(case.cell, name))
        for column in columns:
            if size and len(table[column]) and (most := int(table[column].max())) >= size:
                return f"{name}: {column} is {most} in a row, and the vocabulary has {size} tokens"
    return None
