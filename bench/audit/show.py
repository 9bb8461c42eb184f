"""The report as text and as JSON: the answer first, then readings, flags, scope, rows, and what was read.

It prints what `audit` found and computes nothing.
"""

from __future__ import annotations

import json
import math
from typing import Any

from bench.audit.report import AuditReport
from bench.audit.trials import Flag

MAX_ROWS = 40
"""Trials printed one by one; the rest are counted."""
MAX_FLAGS = 4
"""Sentences of one kind of flag that are printed; the rest are counted."""
MAX_CONTRASTS = 24


def format_audit(report: AuditReport) -> str:
    """The report as text."""
    lines = [report.answer, f"{report.path}: {report.format}, {len(report.trials) or len(report.launches)} row(s)"]
    lines += _claim_lines(report)
    lines += _flag_lines(report.flags)
    lines += [f"  scope: {line}" for line in report.scope]
    lines += ["  " + _contrast_line(row) for row in report.contrasts[:MAX_CONTRASTS]]
    if len(report.contrasts) > MAX_CONTRASTS:
        lines.append(f"  and {len(report.contrasts) - MAX_CONTRASTS} more comparisons (--json has all)")
    for row in report.trials[:MAX_ROWS]:
        lines += _row_lines(row)
    if len(report.trials) > MAX_ROWS:
        lines.append(f"and {len(report.trials) - MAX_ROWS} more (--json has all)")
    lines += [line for one in report.launches[:MAX_ROWS] for line in _launch_lines(one)]
    lines += [f"  note: {note}" for note in report.notes]
    lines.append(f"{len(report.flags)} flag(s): {', '.join(report.codes)}" if report.flags else "nothing flagged")
    return "\n".join(lines)


def to_json(report: AuditReport) -> str:
    """The whole report as JSON; what is not known is null."""
    return json.dumps(
        _plain(
            {
                "answer": report.answer,
                "path": report.path,
                "format": report.format,
                "exit_code": report.exit_code,
                "claim": report.claim,
                "readings": report.readings,
                "flags": [{"code": one.code, "sentence": one.sentence, "numbers": one.numbers} for one in report.flags],
                "scope": report.scope,
                "comparisons": report.contrasts,
                "trials": report.trials,
                "launches": report.launches,
                "notes": report.notes,
            }
        ),
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _flag_lines(flags: list[Flag]) -> list[str]:
    """Flags by code, in the order in which a code is first raised."""
    groups: dict[str, list[Flag]] = {}
    for flag in flags:
        groups.setdefault(flag.code, []).append(flag)
    lines = []
    for code, group in groups.items():
        lines += [f"{code}  {flag.sentence}" for flag in group[:MAX_FLAGS]]
        if len(group) > MAX_FLAGS:
            lines.append(f"{code}  and {len(group) - MAX_FLAGS} more of this kind (--json has all)")
    return lines


def _claim_lines(report: AuditReport) -> list[str]:
    claim = report.claim
    if claim is None:
        return []
    if claim["trial"] is None:
        return [f"claim {claim['claim']:g} tok/s: no reading of the record gives it"]
    right = f"; put right {claim['right']:.1f} tok/s" if _known(claim["right"]) else ""
    lines = [f"claim {claim['claim']:g} tok/s is, for {claim['trial']}: {claim['reading']}{right}"]
    for row in report.readings:
        mark = "  <- published" if row["published"] else ""
        lines.append(f"  {row['tok_s']:9.2f} tok/s  {row['reading']}{mark}")
    return lines


def _row_lines(row: dict[str, Any]) -> list[str]:
    """Two or three lines a trial: counts, rates, acceptance; what is not known is left out."""
    lines = [f"{row['label']}" + (f" ({row['place']})" if row["place"] not in row["label"] else "")]
    if row["counted"]:
        time = f" in {row['seconds']:.3f} s" if _known(row["seconds"]) else ""
        outside = f", {row['first']} of them before the window" if row["first"] else ""
        lines.append(
            f"  counted {row['counted']}, distinct {row['distinct']}{outside}{time}, {row['streams']} answer(s)"
        )
    elif row["emitted"]:
        lines.append(f"  {row['emitted']} tokens, {row['streams']} answer(s)")
    names = (
        ("per_answer_tok_s", "one answer"),
        ("aggregate_tok_s", "sum of answers"),
        ("first_inside_tok_s", "first token inside"),
        ("steady_tok_s", "start-up rounds left out"),
        ("counted_tok_s", "as counted"),
        ("prefill_tok_s", "prefill"),
        ("total_tok_s", "total, prompt and generated"),
    )
    skip = set() if row["counted"] != row["distinct"] else {"counted_tok_s"}
    skip |= set() if row["first"] else {"first_inside_tok_s"}
    skip |= {"aggregate_tok_s"} if row["streams"] == 1 else set()
    rates = [f"{words} {row[name]:.1f}" for name, words in names if name not in skip and _known(row[name])]
    if rates and _known(row["spread"]):
        rates[0] += f" ± {row['spread']:g}"
    if rates:
        lines.append("  tok/s: " + "; ".join(rates))
    if _known(row["answer_seconds"]) and row["counted"]:
        unknown = "" if _known(row["prefill_seconds"]) else ", prefill not recorded"
        lines.append(f"  time to one answer {row['answer_seconds']:.3f} s{unknown}")
    return lines + _guess_lines(row)


def _guess_lines(row: dict[str, Any]) -> list[str]:
    acceptance = row["acceptance"]
    if not acceptance or not (row["drafted"] or row["accepted"]):
        return []
    counts = [f"{word} {row[word]}" for word in ("drafted", "tested", "accepted") if row[word] is not None]
    steps = f" in {row['rounds']} steps" if row["rounds"] else ""
    named = ", ".join(f"{name} {value:.3f}" for name, value in acceptance.items())
    places = ", ".join(f"{share:.2f}" for share in row["positions"])
    return [f"  guesses: {', '.join(counts)}{steps}: {named}" + (f"; by place {places}" if places else "")]


def _contrast_line(row: dict[str, Any]) -> str:
    total = f"; sum {row['aggregate_speedup']:.2f}x" if row["streams"] > 1 else ""
    if row["streams"] > 1:
        head = f"{row['label']}: one answer {row['speedup']:.2f}x, sum {row['aggregate_speedup']:.2f}x of the baseline"
        total = ""
    else:
        head = f"{row['label']}: {row['speedup']:.3f}x"
    if not _known(row["ci_high"]):
        return f"{head}, no interval{total}"
    count = f"{row['n']} {row['units']}" if row["units"] == "prompts" else row["units"]
    seen = f"; smallest visible effect {row['min_visible_effect']:.3f}x" if _known(row["min_visible_effect"]) else ""
    return f"{head}, 95 % interval {row['ci_low']:.3f} to {row['ci_high']:.3f} over {count}{seen}"


def _launch_lines(one: dict[str, Any]) -> list[str]:
    figures = (
        ("us", "{:.2f} us a launch"),
        ("us_low", "at least {:.2f}"),
        ("us_high", "at most {:.2f}"),
        ("registers", "{:.0f} registers"),
    )
    words = [form.format(one[name]) for name, form in figures if one[name] is not None]
    if one["dram_bytes"] is not None:
        words.append(f"{one['dram_bytes'] / 1e6:.1f} MB from memory")
    for name, what in (("share", "of all kernels' time"), ("hit_rate", "hit rate"), ("share_of_peak", "of the peak")):
        if one[name] is not None:
            words.append(f"{100 * one[name]:.1f} % {what}")
    return [f"{one['kernel']} ({one['place']}): {one['calls']} launch(es)", f"  {', '.join(words) or 'no figure'}"]


def _known(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
