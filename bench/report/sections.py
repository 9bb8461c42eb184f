"""The tables of the Markdown report: which columns, which rows, in what words.

Knows nothing about files and templates. Every table is about one group (machine, engine build, model, quantization)
and carries the line of its conditions; rows beyond a limit are left to the CSV file, and the section says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.report.charts import describe, is_void
from bench.report.conditions import CellIndex, condition, grouped
from bench.report.tables import Ordered
from bench.report.terminal import prediction_line
from bench.report.values import (
    MISSING,
    Row,
    all_cells,
    cells_of,
    figure,
    fixed,
    get,
    interval,
    line,
    mebibytes,
    number,
    percent,
    plain,
)

MAX_ROWS = 60
CONTROLS = {"treatment": "", "oracle": ", all guesses right", "sabotage": ", all guesses wrong"}
PREDICTED = (
    "*predicted* prices the decodes of an arm's own rounds by the step-cost curve of the profile and takes all else as "
    "measured, over the measured baseline; *changes of width* is the factor that decodes after another width cost, as "
    "the cell's other arms show. *from acceptance alone* knows only how guesses were accepted by depth, so it holds "
    "for any draft length: the best one is that with the highest value (*projected* beyond the depths tested). Void "
    "cells are left out."
)
MAX_IDS = 40
Column = tuple[str, Callable[[Row], str]]
_VERDICT_OF_DRAWS = {"same": "plain decoding's distribution", "different": "another one"}


@dataclass(frozen=True)
class Table:
    condition: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    intro: str
    empty: str
    """What to say when there is no table."""
    tables: list[Table]
    figures: tuple[str, ...] = ()


def escaped(text: str) -> str:
    """Text that stays inside one cell of a Markdown table."""
    return line(text).replace("|", "\\|")


def tabulate(rows: Sequence[Row], columns: Sequence[Column], told: str, source: str, limit: int = MAX_ROWS) -> Table:
    """One table of at most `limit` rows; the note names the file that has the others."""
    body = [[escaped(text(row)) for _, text in columns] for row in rows[:limit]]
    hidden = len(rows) - len(body)
    note = f"{hidden} more rows are in `{source}`." if hidden else ""
    return Table(told, [name for name, _ in columns], body, note)


def by_group(rows: Sequence[Row], columns: Sequence[Column], index: CellIndex, source: str) -> list[Table]:
    return [tabulate(members, columns, condition(members, index), source) for _, members in grouped(rows, index)]


def _field(*names: str, digits: int = 4) -> Callable[[Row], str]:
    return lambda row: number(get(row, *names), digits)


def _fixed(name: str, decimals: int) -> Callable[[Row], str]:
    return lambda row: fixed(row.get(name), decimals)


def _share(name: str, decimals: int = 1) -> Callable[[Row], str]:
    return lambda row: percent(row.get(name), decimals)


def _memory(name: str) -> Callable[[Row], str]:
    return lambda row: mebibytes(row.get(name))


def _interval(decimals: int = 2) -> Callable[[Row], str]:
    return lambda row: interval(row.get("ci_low"), row.get("ci_high"), decimals)


def _percent_interval(row: Row) -> str:
    low, high = percent(row.get("ci_low")), percent(row.get("ci_high"))
    return MISSING if MISSING in (low, high) else f"{low} to {high}"


def _ids(row: Row) -> str:
    return listed_ids(cells_of(row), 3)


def listed_ids(ids: Sequence[str], limit: int = MAX_IDS) -> str:
    told = " ".join(ids[:limit]) or "none"
    return told if len(ids) <= limit else f"{told} and {len(ids) - limit} more"


def speedup(tables: Ordered, index: CellIndex) -> Section:
    rows = [row for row in tables.rows("speedup") if get(row, "prompt_class") in ("all", None)]
    columns: list[Column] = [
        ("arm", lambda row: describe(row, index)),
        ("speed-up", lambda row: "void" if is_void(row) else fixed(row.get("speedup"), 2)),
        ("95 % interval", lambda row: MISSING if is_void(row) else _interval()(row)),
        ("tok/s", _fixed("tok_s", 1)),
        ("plain tok/s", _fixed("baseline_tok_s", 1)),
        ("counted tok/s", _fixed("counted_tok_s", 1)),
        ("aggregate tok/s", _fixed("aggregate_tok_s", 1)),
        ("steady window", _fixed("steady_speedup", 2)),
        ("over same context", _fixed("solo_speedup", 2)),
        ("tokens a round / round cost", _factors),
        ("predicted from step cost", _fixed("predicted_speedup", 2)),
        ("host time", _share("host_share")),
        ("smallest visible effect", _fixed("min_visible_effect", 3)),
        ("bound tok/s", _fixed("bound_tok_s", 1)),
        ("output", lambda row: number(get(row, "lossless"))),
        ("identical", _share("identical_share")),
        ("why void", lambda row: line(get(row, "void_reason") or "unspecified") if is_void(row) else "sound"),
        ("cells", _ids),
    ]
    shown = by_group(rows, columns, index, "speedup.csv")
    intro = (
        "Speed counts distinct tokens; *counted tok/s* is what counting every emit call would print. *plain tok/s* is "
        "the fastest fair baseline; *over same context* divides by one stream in the arm's own context instead. *bound "
        "tok/s* is what the measured read bandwidth allows. Per prompt class: `speedup.csv`."
    )
    return Section("speedup", "Speed-up", intro, "No finished contrast.", shown, ("speedup",))


def _factors(row: Row) -> str:
    """Both measured factors and, where the judge gave it, their product."""
    tokens, cost = fixed(row.get("tokens_per_round"), 2), fixed(row.get("relative_round_cost"), 2)
    if MISSING in (tokens, cost):
        return MISSING
    product = fixed(row.get("product_speedup"), 2)
    return f"{tokens} / {cost}" + ("" if product == MISSING else f" = {product}")


def round_time(tables: Ordered, index: CellIndex) -> Section:
    parts = ("decode", "draft", "sample", "rollback", "host", "total")
    columns: list[Column] = [
        ("arm", lambda row: number(get(row, "arm")) + (" (void)" if is_void(row) else "")),
        ("method", lambda row: describe(row, index)),
        *((f"{part} ms", _fixed(f"{part}_ms", 3)) for part in parts),
        ("cells", _ids),
    ]
    shown = by_group(tables.rows("decomposition"), columns, index, "decomposition.csv")
    intro = "Milliseconds a round. *host* is the wall time of a round outside its four named parts."
    return Section("round_time", "Where a round's time goes", intro, "No round was timed.", shown, ("round_time",))


def step_cost(tables: Ordered, index: CellIndex) -> Section:
    rows = tables.rows("step_cost")
    columns: list[Column] = [("width", _field("width"))]
    if any(get(row, "layout") for row in rows):
        columns.append(("layout", _field("layout")))
    columns += [
        ("step ms", _fixed("step_ms", 3)),
        ("relative cost", _fixed("relative_cost", 2)),
        ("95 % interval", _interval()),
        ("tok/s if all were accepted", _fixed("predicted_tok_s_all_accepted", 1)),
        ("cells", _ids),
    ]
    shown = by_group(rows, columns, index, "step_cost.csv")
    intro = "Time of one `llama_decode` of a width over that of width 1. Nothing is interpolated between widths."
    return Section("step_cost", "Step cost", intro, "No step-cost curve was measured.", shown, ("step_cost",))


def predictions(tables: Ordered, index: CellIndex) -> Section:
    every = tables.rows("predictions")
    rows = [row for row in every if get(row, "prompt_class") in ("all", None) and not is_void(row)]
    rows = sorted(rows, key=lambda row: list(CONTROLS).index(line(get(row, "arm"))))
    columns: list[Column] = [
        ("arm", lambda row: describe(row, index) + CONTROLS[line(get(row, "arm"))]),
        ("predicted", _fixed("predicted", 2)),
        ("measured", _fixed("measured", 2)),
        ("measured / predicted", _fixed("ratio", 3)),
        ("95 % interval", lambda row: interval(row.get("ratio_low"), row.get("ratio_high"))),
        ("from the curve alone", _fixed("curve_only", 2)),
        ("changes of width", _fixed("alternation", 3)),
        ("from acceptance alone", _fixed("from_draws", 2)),
        ("best draft", lambda row: number(get(row, "best_draft"))),
        ("its speed-up", _fixed("best_speedup", 2)),
        ("95 % interval of it", lambda row: interval(row.get("best_low"), row.get("best_high"))),
        ("acceptance by depth", lambda row: line(get(row, "best_kind") or MISSING)),
        ("no price for", lambda row: line(get(row, "note") or "nothing")),
        ("cells", _ids),
    ]
    shown = by_group(rows, columns, index, "predictions.csv")
    intro = f"{PREDICTED} {prediction_line(every)}"
    empty = "No contrast has a step-cost curve of the same machine, build, model and settings."
    return Section("predictions", "Predicted and measured", intro, empty, shown, ("predictions",))


def acceptance(tables: Ordered, index: CellIndex) -> Section:
    rows = [row for row in tables.rows("acceptance") if figure(row, "position") in (0.0, None)]
    columns: list[Column] = [
        ("method", lambda row: number(index.find(row, "method"))),
        ("streams", _field("streams")),
        ("T", _field("temperature")),
        ("draws", _field("draws")),
        ("accepted / tested", lambda row: f"{number(row.get('accepted'))} / {number(row.get('tested'))}"),
        ("rate", lambda row: "void" if is_void(row) else _share("rate")(row)),
        ("95 % interval", lambda row: MISSING if is_void(row) else _percent_interval(row)),
        ("collision probability", _share("collision_mean")),
        ("difference", _fixed("difference", 4)),
        ("95 % interval of it", lambda row: interval(row.get("difference_low"), row.get("difference_high"), 4)),
        ("cells", _ids),
    ]
    shown = by_group(rows, columns, index, "acceptance.csv")
    intro = (
        "All positions pooled; by position: `acceptance.csv`. Two independent draws from one distribution agree with "
        "its collision probability, the sum of p(x)^2. Acceptance says nothing about speed."
    )
    return Section("acceptance", "Acceptance", intro, "No guess was tested.", shown, ("acceptance",))


def distribution(tables: Ordered, index: CellIndex) -> Section:
    columns: list[Column] = [
        ("arm", lambda row: describe(row, index) + (" (planted fault)" if row.get("arm") == "biased" else "")),
        ("draws come from", lambda row: _VERDICT_OF_DRAWS.get(get(row, "verdict"), number(get(row, "verdict")))),
        ("tokens", _field("tokens")),
        ("compared with a guess", _field("tested")),
        ("prefixes", _field("prefixes")),
        ("total variation", _fixed("tv", 3)),
        ("expected of so many", _fixed("tv_expected", 3)),
        ("p", _field("p", digits=2)),
        ("smallest visible", _fixed("visible_tv", 3)),
        ("cells", _ids),
    ]
    shown = by_group(tables.rows("distribution"), columns, index, "distribution.csv")
    intro = (
        "Next tokens of many short runs behind one prefix, against plain decoding's exact probabilities there "
        "(chi-square; total variation of as many sound draws stands beside the measured one). The planted fault takes "
        "a guess whenever it is among the two likeliest tokens; a test that does not see it says nothing."
    )
    empty = "No draws were counted; `measure.distribution=1000` counts so many of each arm above temperature 0."
    return Section("distribution", "Distribution of the draws", intro, empty, shown)


def domain(tables: Ordered, index: CellIndex) -> Section:
    """On and off a tuned drafter's domain, the excess over a reference beside the plain acceptance."""
    columns: list[Column] = [
        ("method", lambda row: describe(row, index)),
        ("score of an answer", _score),
        ("guesses", lambda row: "all" if row.get("window") == 0 else number(row.get("window"))),
        ("on the domain", _side("on")),
        ("off it", _side("off")),
        ("AUC", _beside("auc")),
        ("threshold", _fixed("threshold", 3)),
        ("false alarms", _beside("false_alarm")),
        ("misses", _beside("miss")),
        ("guesses needed", _field("needed")),
        ("tells", lambda row: "void" if is_void(row) else number(get(row, "tells"))),
        ("by class", _field("by_class")),
        ("cells", _ids),
    ]
    shown = by_group(tables.rows("domain"), columns, index, "domain.csv")
    intro = (
        "How often guesses are accepted on the domain that a prompt set names and off it, and whether a low score says "
        "that an answer is off it: AUC 0.5 is chance, and below that the signal points the wrong way. The threshold "
        "that judges a prompt is made of the other prompts. *collision* is the predictability of the text alone; "
        "*excess* is what acceptance has beyond that, or beyond a drafter without the tuning on the same answers. "
        "Where acceptance tells and its excess does not, the text is harder and it is not the tuning that shows. "
        "*guesses needed*: the fewest from which on both error rates average 10 % or less. Intervals are over prompts."
    )
    empty = "No cell's prompts name a domain; those of `python -m bench sweep method=adapter prompts=pydoc` do."
    return Section("domain", "On and off a drafter's domain", intro, empty, shown)


def _score(row: Row) -> str:
    against = get(row, "against")
    return number(get(row, "signal")) + (f" over {against}" if against not in (None, "none") else "")


def _side(side: str) -> Callable[[Row], str]:
    return lambda row: _with_interval(row, f"{side}_mean", side)


def _beside(name: str) -> Callable[[Row], str]:
    return lambda row: _with_interval(row, name, name)


def _with_interval(row: Row, name: str, stem: str) -> str:
    """A figure and its interval in one column; a table with a column for each end would not fit a page."""
    told = fixed(row.get(name), 2)
    limits = interval(row.get(f"{stem}_low"), row.get(f"{stem}_high"), 2)
    return told if MISSING in (told, limits) else f"{told} ({limits})"


def memory(tables: Ordered, index: CellIndex) -> Section:
    columns: list[Column] = [
        ("streams", _field("streams")),
        (
            "measured in",
            lambda row: " ".join(word for word in (get(row, "source"), get(row, "arm")) if word) or MISSING,
        ),
        ("KV cache", _memory("kv_bytes")),
        ("recurrent state", _memory("state_bytes")),
        ("measured", _memory("measured_bytes")),
        ("a stream", _memory("per_stream_bytes")),
        ("cells", _ids),
    ]
    shown = by_group(tables.rows("memory"), columns, index, "memory.csv")
    intro = "Bytes that the context of that many streams takes."
    return Section("memory", "Memory", intro, "No memory was measured.", shown)


def controls(tables: Ordered, index: CellIndex) -> Section:
    """Failed controls come first and warnings next, so that a limit never hides one behind those that passed."""
    rows = sorted(tables.rows("controls"), key=_calm)
    columns: list[Column] = [
        ("control", _field("control")),
        ("result", lambda row: number(get(row, "severity") or {True: "ok", False: "void"}.get(plain(row.get("ok"))))),
        ("value", _field("value")),
        ("95 % interval", _interval(3)),
        ("what it says", lambda row: number(get(row, "sentence"))),
        ("cells", _ids),
    ]
    shown = by_group(rows, columns, index, "controls.csv")
    intro = "Controls that failed come first. A cell with a failed control is void: its speed-up counts for nothing."
    return Section("controls", "Controls", intro, "No control was run.", shown)


def _calm(row: Row) -> int:
    if plain(row.get("ok")) is False:
        return 0
    return 1 if get(row, "severity") not in ("ok", None) else 2


def peers(tables: Ordered, index: CellIndex) -> Section:
    rows = tables.rows("peers")
    columns: list[Column] = [
        ("program", _field("tool")),
        ("width", _field("width")),
        ("pairs", _field("pairs")),
        ("its tok/s", _fixed("tok_s", 2)),
        ("ours, tok/s", _fixed("ours_tok_s", 2)),
        ("ours / its", _fixed("ratio", 3)),
        ("95 % interval", _interval(3)),
        ("cells", _ids),
    ]
    shown = by_group(rows, columns, index, "peers.csv")
    bandwidth = [("read GB/s", _fixed("read_gb_s", 2)), ("cells", _ids)]
    shown += by_group(tables.rows("bandwidth"), bandwidth, index, "bandwidth.csv")
    intro = "Other programs on the same model and build, and the read bandwidth that the physical bound rests on."
    empty = (
        "No other program was run: `peers.llama_bench=FILE` and `peers.llama_batched_bench=FILE` add them to a sweep."
    )
    return Section("peers", "Peers and read bandwidth", intro, empty, shown)


def failures(tables: Ordered, index: CellIndex) -> Section:
    rows = [row for row in tables.rows("cells") if get(row, "state") not in ("done", None) or is_void(row)]
    columns: list[Column] = [
        ("state", lambda row: number(get(row, "state")) + (", void" if is_void(row) else "")),
        ("cell", _ids),
        ("kind", lambda row: number(get(row, "kind"))),
        ("what", lambda row: describe(row, index)),
        ("reason", lambda row: number(get(row, "reason", "void_reason"))),
    ]
    shown = by_group(rows, columns, index, "cells.csv")
    intro = "These cells count for no verdict. The same sweep again runs the failed ones anew."
    empty = "Every stored cell finished, and its controls passed."
    return Section("failures", "Failed, unsupported and void cells", intro, empty, shown)


def provenance(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Section:
    """Which cells each table rests on."""
    names = ("speedup", "decomposition", "step_cost", "predictions", "acceptance", "distribution", "domain", "memory",
             "controls", "peers",
             "bandwidth")  # fmt: skip
    sources = {"claims": list(claims)} | {name: tables.rows(name) for name in names}
    told = {name: all_cells(rows) for name, rows in sources.items()}
    lines = [{"table": name, "ids": ids, "cells": ids} for name, ids in told.items()]
    columns: list[Column] = [
        ("table", lambda row: f"`{row['table']}.csv`"),
        ("cells", lambda row: str(len(row["ids"]))),
        ("ids", lambda row: listed_ids(row["ids"])),
    ]
    everything = [row for rows in sources.values() for row in rows if cells_of(row)]
    shown = [tabulate(lines, columns, condition(everything, index), "cells.csv")] if everything else []
    intro = "Every row of every CSV file lists its cells in the column `cells`; each cell is a folder of raw records."
    return Section("provenance", "What each table rests on", intro, "No cell is stored.", shown)


def all_sections(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> list[Section]:
    makers = (speedup, round_time, step_cost, predictions, acceptance, distribution, domain, memory, controls,
              peers, failures)
    return [make(tables, index) for make in makers] + [provenance(tables, claims, index)]
