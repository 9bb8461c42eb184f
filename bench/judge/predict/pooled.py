"""Speed-up rows of one arm under equal conditions made one row, and rows of other conditions set against each other.

The lucky cell of several must not speak for its arm: cells of equal conditions are pooled, and among answers of
different length the most thorough counts. Under other settings of the engine plain decoding is faster or slower too, so
every arm is held against the fastest plain decoding that was measured. It advises nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.judge.columns import changed
from bench.judge.measure.intervals import CONFIDENCE, SE_FLOOR, Estimate, satterthwaite, t_quantile
from bench.judge.tables.contrast import LIKE_THESE, THESE, SpeedUp

SETTINGS = ("threads", "n_gpu_layers", "flash_attn", "type_k", "type_v", "sampler")
"""Of the engine, what decides how fast plain decoding is; the rest follows from the arm."""


def settings_of(row: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The settings under which a row was measured."""
    return tuple((name, row.get(name)) for name in SETTINGS)


def arm_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells one arm from another, whatever its temperature."""
    return row["method"], row["streams"], *sorted(row["parameters"].items())


def of_texts(row: SpeedUp) -> SpeedUp:
    """The row with its interval over prompts, where there is one: what is advised is for texts that nobody has run."""
    if row["speaks_of"] == LIKE_THESE or not np.isfinite(row["prompts_low"]):
        return row
    freedom = max(row["n_prompts"] - 1.0, 1.0)
    return changed(row, ci_low=row["prompts_low"], ci_high=row["prompts_high"], freedom=freedom)


def of_one_text(row: Mapping[str, Any]) -> bool:
    """Whether the row says nothing of a second text."""
    return bool(row["speaks_of"] == THESE and not np.isfinite(row["prompts_low"]))


def pooled(rows: Sequence[SpeedUp]) -> list[SpeedUp]:
    """One row an arm, settings, temperature, class and scope, in order of appearance."""
    groups: dict[tuple[Any, ...], dict[Any, list[SpeedUp]]] = {}
    for row in map(of_texts, rows):
        key = (arm_of(row), settings_of(row), row["temperature"], row["prompt_class"], row["scope"])
        groups.setdefault(key, {}).setdefault(row.get("n_predict"), []).append(row)
    return [_joined(max(by_length.values(), key=lambda cells: sum(row["n_blocks"] for row in cells)))
            for by_length in groups.values()]  # fmt: skip


def _joined(rows: list[SpeedUp]) -> SpeedUp:
    """Cells of one arm under equal conditions as one row; blocks weigh the same."""
    if len(rows) == 1:
        return rows[0]
    weights = np.array([row["n_blocks"] for row in rows], dtype=float)
    weights /= weights.sum()
    parts = [estimate_of(row) for row in rows]
    logs = np.array([one.log_mean for one in parts])
    mean = float(weights @ logs)
    variances = weights**2 * np.array([one.log_se for one in parts]) ** 2
    # Cells that disagree by more than their own noise: another context, another hour.
    between = float((weights * (logs - mean) ** 2).sum()) / (len(rows) - 1)
    variance = max(float(variances.sum()), between)
    df = satterthwaite(variances.tolist(), [one.freedom for one in parts])
    df = float(len(rows) - 1) if between > float(variances.sum()) else df
    found = Estimate(mean, float(np.sqrt(variance)), len(rows), "cells", df=max(df, 1.0))
    low, high = found.interval()
    longest = max(rows, key=lambda row: row["n_blocks"])
    return changed(
        longest, speedup=found.ratio, ci_low=low, ci_high=high, freedom=found.freedom,
        n_blocks=sum(row["n_blocks"] for row in rows), cells=sorted({cell for row in rows for cell in row["cells"]}),
    )  # fmt: skip


def estimate_of(row: Mapping[str, Any]) -> Estimate:
    """The estimate whose interval the row has, symmetric on the log scale with the wider half on both sides."""
    middle = float(np.log(row["speedup"]))
    low, high = row["ci_low"], row["ci_high"]
    if not low > 0 or not np.isfinite(high):
        return Estimate(middle, float("inf"), 1, "blocks", df=1.0)
    df = max(float(row["freedom"]), 1.0)
    half = max(middle - float(np.log(low)), float(np.log(high)) - middle)
    return Estimate(middle, max(half / t_quantile(df, CONFIDENCE), SE_FLOOR), row["n_units"], row["units"], df=df)


def _plain(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[tuple[str, Any], ...], float]:
    """Mean log rate of plain decoding by settings."""
    found: dict[tuple[tuple[str, Any], ...], list[float]] = {}
    for row in rows:
        found.setdefault(settings_of(row), []).append(float(np.log(row["baseline_tok_s"])))
    return {settings: float(np.mean(logs)) for settings, logs in found.items()}


def fastest_settings(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings under which plain decoding is fastest."""
    level = _plain(rows)
    return dict(next(settings for settings, log in level.items() if log == max(level.values())))


def over_the_fastest(rows: Sequence[SpeedUp]) -> list[SpeedUp]:
    """Rows of one question with every speed-up over the plain decoding of the fastest settings among them."""
    level = _plain(rows)
    if len(level) == 1:
        return list(rows)
    fastest = max(level.values())
    return [_scaled(row, float(np.exp(level[settings_of(row)] - fastest))) for row in rows]


def _scaled(row: SpeedUp, factor: float) -> SpeedUp:
    names = ("speedup", "ci_low", "ci_high")
    return row if factor == 1 else changed(row, **{name: row[name] * factor for name in names})


def together(row: SpeedUp, looked_at: int) -> SpeedUp:
    """The row with an interval that holds together with those of `looked_at` rows (Bonferroni)."""
    if looked_at < 2 or not np.isfinite(row["ci_high"]):
        return row
    low, high = estimate_of(row).interval(1 - (1 - CONFIDENCE) / looked_at)
    return changed(row, ci_low=low, ci_high=high)


def apart(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The settings that are not the same in all rows, which advice has to name."""
    return tuple(name for name in SETTINGS if len({str(row.get(name)) for row in rows}) > 1)
