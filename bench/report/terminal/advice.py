"""Advice in the terminal: what to use for which text, what is not worth it and why, what to measure next.

Decides nothing and reads no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.judge.findings import MARK
from bench.judge.predict.advice import PERHAPS, PLAIN, USE, USUAL, Advice, Choice, Drafter
from bench.plain_text import plain_lines, plain_text
from bench.report.tables.arms import describe
from bench.report.tables.conditions import CellIndex
from bench.report.tables.values import MISSING, fixed, get, interval, number

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

COLOURS = {USE: "green", PERHAPS: "yellow", PLAIN: ""}
MOST_MISSING = 8
_NO_CELLS = CellIndex()


def print_advice(advice: Advice, folder: Path, model_word: str, console: Console) -> None:
    """Prints the advice; `folder` is where its records lie, `model_word` the override that names the model."""
    from rich.text import Text

    def say(text: str, style: str = "") -> None:
        console.print(Text(plain_lines(text), style=style), soft_wrap=True)

    void = f", {advice.void} of them void" if advice.void else ""
    say(f"{advice.model} on {advice.machine}, engine {advice.build}; {len(advice.cells)} cells{void} in {folder}")
    if MARK in advice.model:
        say("Its weights are random: steps and independent answers cost what they do, guesses say nothing.", "yellow")
    console.print()
    if advice.choices:
        console.print(_choices(advice.choices))
        if all(one.verdict != USE for one in advice.choices):
            shown = "" if all(one.verdict == PLAIN for one in advice.choices) else "shown to be "
            say(f"Nothing measured here is {shown}faster than plain decoding.", "bold")
    else:
        say("No sound contrast: nothing was measured that could be advised.")
    if advice.rejected:
        say("\nNot worth it here:", "bold")
        for arm in advice.rejected:
            within = interval(arm.row["ci_low"], arm.row["ci_high"])
            say(f"  {describe(arm.row, _NO_CELLS)}: {fixed(arm.row['speedup'], 2)}x ({within}); {arm.reason}")
    for method, reason in advice.unsupported:
        say(f"  {method}: cannot run with this model: {reason}")
    if advice.drafters:
        say("\nWhat guesses must reach to pay, where they cost nothing:", "bold")
        console.print(_drafters(advice.drafters))
        for width in advice.cliffs:
            say(f"  Width {width} is a cliff: a draft of {width - 1} or more pays for it.")
    if advice.missing:
        say("\nMeasurements that would say more:", "bold")
    for one in advice.missing[:MOST_MISSING]:
        say(f"  {one.what}")
        say(f"    python -m bench sweep {' '.join((model_word, *one.overrides))}", "dim")
    if len(advice.missing) > MOST_MISSING:
        say(f"  and {len(advice.missing) - MOST_MISSING} more")


def _table(*columns: tuple[str, str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left")
    return table


def _choices(choices: Sequence[Choice]) -> Table:
    from rich.text import Text

    table = _table(("T", "right"), ("text", "left"), ("use", "left"), ("speed-up", "right"), ("95 %", "right"),
                   ("best draft", "right"))  # fmt: skip
    for one in choices:
        row = one.row
        name = describe({**row, "temperature": None, "scope": None}, _NO_CELLS)
        told = {USE: name, PERHAPS: f"perhaps {name}", PLAIN: f"plain decoding (not {name})"}[one.verdict]
        told += f" with {' '.join(one.settings)}" if one.settings else ""
        text = one.prompt_class
        text += f": {number(row['concurrent'])} answers at once" if one.several else ""
        table.add_row(
            number(one.temperature), Text(plain_text(text)),
            Text(plain_text(told), style=COLOURS[one.verdict]), fixed(row["speedup"], 2),
            interval(row["ci_low"], row["ci_high"]), _draft(one) if one.verdict != PLAIN else MISSING,
        )  # fmt: skip
    return table


def _draft(one: Choice) -> str:
    """`3: 1.20 (1.10 to 1.31)`, with what it is: measured by a cell of its own, or from the depths that were tested."""
    told = one.prediction or {}
    best = get(told, "best_draft")
    if best is None:
        return MISSING
    if one.other_draft is not None:
        row = one.other_draft
        return f"{number(best)}: {fixed(row['speedup'], 2)} ({interval(row['ci_low'], row['ci_high'])}), measured"
    kind = get(told, "best_kind")
    within = interval(told.get("best_low"), told.get("best_high"))
    return (f"{number(best)}: {fixed(told.get('best_speedup'), 2)} ({within}), "
            f"{'predicted' if kind == 'measured' else kind}")  # fmt: skip


def _drafters(drafters: Sequence[Drafter]) -> Table:
    table = _table(("draft", "right"), ("verifying costs", "right"), ("pays from", "right"), ("if all right", "right"),
                   (f"a guess may take at {100 * USUAL:.0f} %", "right"))  # fmt: skip
    for one in drafters:
        needed = "never" if one.break_even != one.break_even else f"{100 * one.break_even:.0f} %"
        dearest = f"{one.dearest:.2f} steps" if one.dearest > 0 else "no gain"
        table.add_row(number(one.length), f"{one.cost:.2f} steps", needed, f"{one.ceiling:.2f}x", dearest)
    return table
