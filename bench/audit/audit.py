"""`python -m bench audit FILE`: recount a foreign record and flag what a reader must know before quoting it.

It needs no model and runs nothing. It reads a file, recounts, and compares the record with itself, with what its author
published (`AuditOptions`) and with physics; it cannot tell whether the file is an honest log of what ran.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from bench.audit.flags.acceptance import acceptance_flags, definitions
from bench.audit.flags.contrasts import contrast, contrast_flags, ratios, speculation_rate, step_costs
from bench.audit.flags.times import claim_flags, timing_flags
from bench.audit.flags.tokens import token_flags
from bench.audit.formats.llama_bench import read_record
from bench.audit.options import AuditOptions
from bench.audit.readings import Reading, explain, honest
from bench.audit.trials import NAN, Flag, Record, Trial, baseline_arm, treatments
from bench.errors import UserError

MAX_ROWS = 40
"""Trials printed one by one; the rest are counted."""


@dataclass(frozen=True)
class AuditReport:
    """What the audit found. `trials` has one dict a trial; a rate that the record does not give is nan."""

    path: str
    format: str
    trials: list[dict[str, object]]
    contrasts: list[dict[str, object]]
    notes: list[str]
    flags: list[Flag]
    claim: dict[str, object] | None = None

    @property
    def codes(self) -> list[str]:
        """Codes of the flags, each once, in order."""
        return list(dict.fromkeys(flag.code for flag in self.flags))

    @property
    def exit_code(self) -> int:
        """0 when nothing is flagged, 1 otherwise. A file that cannot be read is a UserError, exit code 2."""
        return 1 if self.flags else 0


def audit(path: Path, options: AuditOptions | None = None) -> AuditReport:
    """Judge one record. UserError where the file, or the options beside it, cannot be used."""
    options = options or AuditOptions()
    _check(options)
    record = read_record(path, options.streams)
    if not record.trials:
        return AuditReport(
            str(path),
            record.format,
            [],
            [],
            list(record.notes),
            [Flag("EMPTY", f"{path}: has a header and no rows; a failed run is not 0 tok/s")],
        )
    against = read_record(options.against) if options.against else None
    flags = token_flags(record, options) + timing_flags(record, options) + claim_flags(record, options)
    flags += acceptance_flags(record, options) + contrast_flags(record, options, against)
    return AuditReport(
        str(path),
        record.format,
        [_counted(trial, options) for trial in record.trials],
        _contrasts(record, options, against),
        [*record.notes, *_notes(record, options)],
        _unique(flags),
        _claim(record, options),
    )


def _unique(flags: list[Flag]) -> list[Flag]:
    return list({(flag.code, flag.sentence): flag for flag in flags}.values())


def _check(options: AuditOptions) -> None:
    """Options that make no sense."""
    for name in ("claim", "speedup", "baseline", "bytes_per_step", "bandwidth", "requested", "streams"):
        value = getattr(options, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise UserError(f"--{name.replace('_', '-')} is {value:g}, expected a number above 0")
    if options.acceptance is not None and not 0 <= options.acceptance <= 1:
        raise UserError(f"--acceptance is {options.acceptance:g}, expected 0 to 1; 76.6 % is --acceptance 0.766")
    if any(not (math.isfinite(value) and value >= 0) for value in options.temperatures):
        raise UserError("--temperatures has a value below 0, expected numbers such as 0,0.7 or the word any")


def _counted(trial: Trial, options: AuditOptions) -> dict[str, object]:
    """One row of the recount. Totals include the tokens of the prefill; rates do not, unless their name says so."""
    whole = trial.seconds + trial.prefill_seconds
    total = trial.distinct + trial.first + trial.prompt_tokens
    return {
        "label": trial.label,
        "place": trial.place,
        "arm": trial.arm,
        "streams": trial.streams,
        "counted": trial.counted + trial.first,
        "distinct": trial.distinct + trial.first,
        "first": trial.first,
        "seconds": trial.seconds,
        "per_answer_tok_s": trial.per_answer,
        "aggregate_tok_s": trial.aggregate,
        "counted_tok_s": trial.counted / trial.seconds if trial.seconds > 0 and trial.counted else NAN,
        "first_inside_tok_s": (trial.distinct + trial.first) / trial.seconds / trial.streams
        if trial.seconds > 0 and trial.distinct
        else NAN,
        "steady_tok_s": (trial.distinct - trial.startup_distinct)
        / (trial.seconds - trial.startup_seconds)
        / trial.streams
        if trial.startup_seconds and trial.seconds > trial.startup_seconds
        else NAN,
        "prefill_tok_s": trial.prefill_rate,
        "prefill_seconds": trial.prefill_seconds,
        "answer_seconds": whole if math.isfinite(whole) else trial.seconds,
        "total_tok_s": total / whole if whole > 0 and trial.prompt_tokens else NAN,
        "rounds": trial.rounds,
        "drafted": trial.drafted,
        "tested": trial.tested,
        "accepted": trial.accepted,
        "acceptance": definitions(trial),
    }


def _claim(record: Record, options: AuditOptions) -> dict[str, object] | None:
    if options.claim is None:
        return None
    reading: Reading | None = explain(options.claim, list(record.trials), options.per)
    if reading is None:
        return {"claim": options.claim, "trial": None, "reading": "none", "right": NAN}
    return {
        "claim": options.claim,
        "trial": reading.trial.label,
        "reading": reading.words,
        "right": honest(reading, options.per),
    }


def _contrasts(record: Record, options: AuditOptions, against: Record | None) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    base = baseline_arm(record) or ""
    for arm in treatments(record):
        estimate = contrast(record, arm, base)
        if estimate is not None:
            low, high = estimate.interval()
            rows.append(
                {
                    "label": f"{arm} over {base}",
                    "speedup": estimate.ratio,
                    "ci_low": low,
                    "ci_high": high,
                    "units": f"{estimate.n_units} {estimate.units}",
                }
            )
    rows += [
        {"label": trial.label, "speedup": answer, "aggregate_speedup": total}
        for trial, answer, total in ratios(record, options, against)
    ]
    return rows


def _notes(record: Record, options: AuditOptions) -> list[str]:
    notes = []
    costs = step_costs(record)
    if len(costs) > 1:
        notes.append("step cost: " + ", ".join(f"width {width} {1e3 * cost:.1f} ms" for width, cost in costs.items()))
        if options.acceptance is not None:
            rates = {width: speculation_rate(costs, width - 1, options.acceptance) for width in costs}
            best = max(rates, key=lambda width: rates[width])
            notes.append(
                f"at an acceptance of {options.acceptance:g}: "
                + ", ".join(f"{width - 1} guesses {rate:.1f} tok/s" for width, rate in rates.items())
                + f"; best with {best - 1}, drafting not counted"
            )
    for trial in record.trials:
        if options.streams and trial.streams_known and options.streams != trial.streams:
            notes.append(
                f"{options.streams} streams were claimed; {trial.label} has {trial.streams} answer(s) at a time"
            )
            break
    return notes


def format_audit(report: AuditReport) -> str:
    """The report as text, flags last."""
    lines = [
        f"{report.path}: {report.format}, {len(report.trials)} timed row(s)",
        *(f"  {note}" for note in report.notes),
    ]
    for row in report.trials[:MAX_ROWS]:
        lines += _row_lines(row)
    if len(report.trials) > MAX_ROWS:
        lines.append(f"  and {len(report.trials) - MAX_ROWS} more")
    for row in report.contrasts:
        lines.append("  " + _contrast_line(row))
    if report.claim is not None:
        lines.append(_claim_line(report.claim))
    lines += [f"{flag.code}  {flag.sentence}" for flag in report.flags]
    lines.append(f"{len(report.flags)} flag(s): {', '.join(report.codes)}" if report.flags else "nothing flagged")
    return "\n".join(lines)


def _row_lines(row: dict[str, object]) -> list[str]:
    """Two or three lines a trial: counts, rates, acceptance; what is not known is left out."""
    lines = [f"{row['label']}" + (f" ({row['place']})" if row["place"] != row["label"] else "")]
    if row["counted"]:
        time = f" in {row['seconds']:.3f} s" if _known(row["seconds"]) else ""
        outside = f", {row['first']} of them before the window" if row["first"] else ""
        lines.append(
            f"  counted {row['counted']}, distinct {row['distinct']}{outside}{time}, {row['streams']} answer(s)"
        )
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
    if rates:
        lines.append("  tok/s: " + "; ".join(rates))
    if _known(row["answer_seconds"]) and row["counted"]:
        lines.append(
            f"  time to one answer {row['answer_seconds']:.3f} s"
            + ("" if _known(row["prefill_seconds"]) else ", prefill not recorded")
        )
    acceptance = row["acceptance"]
    if isinstance(acceptance, dict) and acceptance and (row["drafted"] or row["accepted"]):
        lines.append(
            f"  guesses: drafted {row['drafted']}, tested {row['tested']}, accepted {row['accepted']} in "
            f"{row['rounds']} steps: " + ", ".join(f"{name} {value:.3f}" for name, value in acceptance.items())
        )
    return lines


def _contrast_line(row: dict[str, object]) -> str:
    if "aggregate_speedup" in row:
        return f"{row['label']}: one answer {row['speedup']:.2f}x, sum {row['aggregate_speedup']:.2f}x of the baseline"
    if "ci_low" not in row or not _known(row["ci_high"]):
        return f"{row['label']}: {row['speedup']:.3f}x, no interval"
    interval = f"95 % interval {row['ci_low']:.3f} to {row['ci_high']:.3f} over {row['units']}"
    return f"{row['label']}: {row['speedup']:.3f}x, {interval}"


def _claim_line(claim: dict[str, object]) -> str:
    if claim["trial"] is None:
        return f"claim {claim['claim']:g} tok/s: no reading of the record gives it"
    right = f"; put right {claim['right']:.1f} tok/s" if _known(claim["right"]) else ""
    return f"claim {claim['claim']:g} tok/s is, for {claim['trial']}: {claim['reading']}{right}"


def _known(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
