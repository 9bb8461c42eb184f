"""The tables of docs/spec-default.md, made from the committed reference results. It computes nothing.

`python -m bench.spec_default` writes them into the page; a test compares them, so that the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.judge.measure.served import WHEN
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, fixed

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
PAGE = ROOT / "docs" / "spec-default.md"
BEGIN, END = "<!-- tables: python -m bench.spec_default -->", "<!-- end of tables -->"
LONG = 300
"""Tokens of an answer from which on a match of 24 tokens and a draft of 48 can come about."""
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "`--spec-default`: ngram-mod 24/48/64": {"type": "ngram-mod", "n": 0, "m": 0, "n_min": -1},
    "what stands beside it as a comment: ngram-map-k4v 8/24, 2 hits": {"type": "ngram-map-k4v", "n": 8, "m": 24,
                                                                        "hits": 2},
}  # fmt: skip
SERVED: Mapping[str, tuple[str, ...]] = {
    "llama-server with `--spec-default`": ("--spec-default",),
    "llama-server with the other": ("ngram-map-k4v", "--spec-ngram-map-k4v-size-n 8", "--spec-ngram-map-k4v-size-m 24",
                                    "--spec-ngram-map-k4v-min-hits 2"),
}  # fmt: skip
"""Words that the command line on trial has, by what it is called."""
ASKED = "No stored cell has such servers. docs/trials.md says how two are asked in turn."
NOTHING = "No stored cell has these settings. `python -m bench sweep +experiment=ngram` measures them."


def tables(findings: Any) -> str:
    """Markdown: for each setting its speed by class of text, and what keeping its drafter does."""
    ordered = Ordered(findings)
    index = CellIndex.of(ordered)
    parts = [f"### {title}\n\n{_setting(ordered, index, own)}" for title, own in SETTINGS.items()]
    parts += [f"### {title}\n\n{_servers(ordered, index, words)}" for title, words in SERVED.items()]
    return "\n\n".join(parts)


def _setting(ordered: Ordered, index: CellIndex, own: Mapping[str, object]) -> str:
    rows = [row for row in ordered.rows("speedup") if _is(row, own) and row["scope"] == "answer"]
    if not rows:
        return NOTHING
    lines = [
        f"Conditions: {condition(rows, index)}. Intervals are for these texts on this machine, 95 %.", "",
        "| text | speed over plain decoding | tokens a round | output |", "| --- | --- | --- | --- |",
        *(_line(row) for row in sorted(rows, key=lambda row: (row["prompt_class"] == "all", row["prompt_class"]))),
    ]  # fmt: skip
    kept = [row for row in ordered.rows("kept_drafters") if _is(row, own)]
    if kept:
        told = "; ".join(f"{row['when']} {fixed(row['tokens_per_round'], 2)}" for row in kept)
        lines += ["", f"A drafter that is kept, on '{kept[0]['prompt']}', in tokens a round: {told}."]
    return "\n".join(lines)


def _servers(ordered: Ordered, index: CellIndex, words: Sequence[str]) -> str:
    """A fresh server for each answer beside one without a drafter, and what one does that is kept."""
    rows = [row for row in ordered.rows("trials") if is_served(row, words) and row["scope"] == "answer"]
    if not rows:
        return ASKED
    lines = [
        f"Conditions: {condition(rows, index)}. Each answer has a fresh server. Intervals are for these texts on this "
        "machine, 95 %.", "",
        "| text | tokens a second, with and without | speed over a server without | output |",
        "| --- | --- | --- | --- |",
        *(_served_line(row) for row in sorted(rows, key=lambda row: (row["prompt_class"] == "all",
                                                                     row["prompt_class"]))),
    ]  # fmt: skip
    cells = {cell for row in rows for cell in row["cells"]}
    kept = [row for row in ordered.rows("servers") if row["cell"] in cells and row["arm"] == "kept"]
    if kept:
        kept.sort(key=lambda row: WHEN["kept"].index(row["when"]))
        told = "; ".join(f"{row['when']} {fixed(row['tok_s'], 0)}" for row in kept)
        lines += ["", f"One server that is kept, on one prompt, in tokens a second: {told}."]
    return "\n".join(lines)


def is_served(row: Row, words: Sequence[str]) -> bool:
    """Whether a row is of a server on trial with these options and long answers, at temperature 0."""
    return (row["difference"] == "server" and row["temperature"] == 0 and all(word in row["became"] for word in words)
            and (row["conditions"]["n_predict"] or 0) >= LONG)  # fmt: skip


def _served_line(row: Row) -> str:
    if row["void"]:
        return f"| {row['prompt_class']} | n/a | void | {row['lossless']} |"
    return (f"| {row['prompt_class']} | {fixed(row['tok_s'], 0)} and {fixed(row['baseline_tok_s'], 0)} | "
            f"{_ratio(row)} | {row['lossless']} |")  # fmt: skip


def _is(row: Row, own: Mapping[str, object]) -> bool:
    """Whether a row is of a native drafter with these parameters and long answers, at temperature 0."""
    about = row["conditions"]
    given = about["parameters"]
    return (row["method"] == "native" and row["temperature"] == 0 and (about["n_predict"] or 0) >= LONG
            and all(given.get(key) == value for key, value in own.items()))  # fmt: skip


def _line(row: Row) -> str:
    if row["void"]:
        return f"| {row['prompt_class']} | void | n/a | {row['lossless']} |"
    return f"| {row['prompt_class']} | {_ratio(row)} | {fixed(row['tokens_per_round'], 2)} | {row['lossless']} |"


def _ratio(row: Row) -> str:
    """The speed-up with its interval over these texts."""
    return f"**{fixed(row['speedup'], 2)} ({fixed(row['noise_low'], 2)} to {fixed(row['noise_high'], 2)})**"


def put(text: str, made: str) -> str:
    """The page with the tables between its marks replaced."""
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:begin]}\n{made}\n{text[end:]}"


def main(arguments: Sequence[str] = (), page: Path = PAGE) -> None:
    """Write the tables into the page. Raises `UserError` where a cell of the reference is damaged."""
    from bench.records.cells import whole_cells
    from bench.stored import judge_stored

    made = tables(judge_stored(whole_cells(REFERENCE)))
    page.write_text(put(page.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main()
