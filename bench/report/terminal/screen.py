"""The one-screen summary in the terminal: nothing is cut off at any width, in colour or without, off a terminal too.

Decides nothing and reads no file. Colour repeats the verdict's word, so nothing is lost without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.judge.summary import Summary
from bench.plain_text import plain_text
from bench.report import summary as words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

COLOURS = {
    "refuted": "red", "misstated": "magenta", "reproduced": "green", "inconclusive": "yellow",
    "not_comparable": "blue", "not_run": "dim", "left_out": "dim",
    "quiet": "green", "disturbed": "yellow", "cannot tell": "yellow",
}  # fmt: skip
INDENT = 2


def print_summary(summary: Summary, out: Path, console: Console) -> None:
    """Prints the screen; `out` is the folder of the report."""
    for lack in summary.missing:
        console.print(_plain(f"Missing: {lack.sentence}", "yellow"))
    if summary.only:
        console.print(_plain(words.only(summary), "yellow"))
    console.print(_plain(words.QUIET_TITLE, "bold"))
    for verdict, name, sentence in words.machines(summary):
        _indented(_led(verdict, f"{name}: {sentence}"), console)
    if not summary.machines:
        _indented(_plain(words.NO_CONTRAST), console)
    if summary.headlines:
        console.print(_plain(words.claims_title(summary), "bold"))
    for one in words.told(summary):
        console.print(_led(one.verdict, one.says))
        _indented(_plain(f"{one.why} [{words.basis(one)}]"), console)
        _indented(_plain(f"{words.CHANGE}: {one.would_change}", "dim"), console)
    if left := words.left_out(summary):
        console.print(_plain(words.left_out_title(summary), "bold"))
        for one in left:
            _indented(_plain(f"{one.says} {one.why}"), console)
    console.print(_plain(words.total(summary), "bold"))
    for kind in summary.evidence:
        if kind.total:
            _indented(_plain(words.evidence(kind)), console)
    if legend := words.legend(summary):
        console.print(_plain(words.LEGEND_TITLE, "bold"))
    for word, meaning in legend:
        _indented(_plain(f"{word}: {meaning}"), console)
    console.print(_plain(f"Every claim with its reason: {Path(out) / 'index.html'} (or report.md)"), soft_wrap=True)


def _indented(text: Text, console: Console) -> None:
    from rich.text import Text

    for line in text.wrap(console, max(console.width - INDENT, 1)):
        line.rstrip()
        console.print(Text.assemble(" " * INDENT, line))


def _led(word: str, text: str) -> Text:
    """A verdict in its colour, and what it is about."""
    from rich.text import Text

    return Text.assemble((word, f"bold {COLOURS.get(word, '')}".strip()), (f"  {plain_text(text)}", ""))


def _plain(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(plain_text(text), style=style)
