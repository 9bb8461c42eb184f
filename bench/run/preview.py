"""What `sweep --plan` says: the cells that a sweep would run, how long they take and what they fill, before any runs.

It loads the engine, whose build is part of every id, and no model. It measures nothing and writes nothing.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.durations import clock_text
from bench.plan.cells import Cell
from bench.plan.cost import Costs, Guess, past_cells
from bench.plan.settings import Config
from bench.records.cells import REFERENCE
from bench.records.folders import cell_folders
from bench.run.engines import engine, offloads
from bench.run.prepared import prepare
from bench.run.worker import config_of
from pti_loop.gguf import file as gguf_file

STATES = {"missing": "run", "done": "done", "failed": "again", "unsupported": "again", "damaged": "again",
          "newer": "left"}  # fmt: skip
WORDS = {
    "run": "not measured yet", "done": "stored and whole: it would be kept",
    "again": "failed, unsupported or damaged before: it would be tried again",
    "left": "written by a later release: it would be left as it is",
}  # fmt: skip
_RUNS = ("run", "again")
_HEAD = f"{'id':12}  {'state':5}  {'takes':>12}  {'disk':>8}  cell"
_INDENT = 46
_CLASSES = 12
"""Classes of a file of prompts that are named."""


@dataclass(frozen=True)
class Plan:
    """The cells of a sweep, in which state each is, and what it costs."""

    cells: Sequence[Cell]
    configs: Sequence[Config]
    states: Mapping[str, str]
    guesses: Mapping[str, Guess]
    costs: Costs

    @property
    def todo(self) -> list[Cell]:
        """Those that would run."""
        return [cell for cell in self.cells if self.states[cell.id] in _RUNS]

    @property
    def seconds(self) -> tuple[float, float, float]:
        """Of all that would run: least, likely and most."""
        found = [self.guesses[cell.id] for cell in self.todo]
        return sum(one.low for one in found), sum(one.seconds for one in found), sum(one.high for one in found)


def plan_of(overrides: Sequence[str]) -> Plan:
    """The plan of a sweep. Raises `UserError` for whatever a sweep would refuse before it runs."""
    planned, configs, _ = prepare(overrides, writes=False)
    states = {cell.id: STATES[cell.state] for cell in planned}
    costs = past_cells(_stored(Path(configs[0].results), planned[0].folder.parent.name), frozenset(states))
    return Plan(planned, configs, states, {cell.id: _guess(costs, cell) for cell in planned}, costs)


def preview(overrides: Sequence[str]) -> Iterator[str]:
    """The plan of a sweep in lines. Raises `UserError` for whatever a sweep would refuse before it runs."""
    plan = plan_of(overrides)
    states, root = plan.states, Path(plan.configs[0].results)
    counts = {state: sum(found == state for found in states.values()) for state in WORDS}
    yield (f"{len(plan.cells)} cells of {len(plan.configs)} points on {plan.cells[0].folder.parent.name}: "
           + ", ".join(f"{count} {state}" for state, count in counts.items() if count))  # fmt: skip
    yield from ("", _HEAD)
    for cell in plan.cells:
        yield from _row(cell, states[cell.id], plan.guesses[cell.id])
    yield ""
    yield from _total(plan, root)
    yield from _wrapped(_prompts(plan))
    yield from _wrapped(_sources(plan))
    yield from _wrapped(f"{state}: {WORDS[state]}" for state, count in counts.items() if count)
    if plan.todo:
        yield "Nothing has run. The same command without --plan measures it."


def _stored(root: Path, machine: str) -> list[Path]:
    """Cells of this machine: its own, and those of the committed reference."""
    places = (root, root / REFERENCE, Path("results"), Path("results") / REFERENCE)
    found = {folder.resolve(): folder for place in places for folder in cell_folders(place)
             if folder.parent.name == machine}  # fmt: skip
    return list(found.values())


def _guess(costs: Costs, cell: Cell) -> Guess:
    here = cell.model_path.is_file()  # servers at addresses have theirs elsewhere
    file = _file(cell.model_path) if here else None
    size = file.file_bytes if file else 0
    held = engine(cell.engine).kv_bytes_per_token(file, config_of(cell.config)) / file.step_bytes if file else 0.0
    guess = costs.guess(cell.id, cell.kind, cell.config, _on_cpu(cell), size, held)
    budget = 60 * float(cell.config["measure"].get("budget", 0.0))  # there only where blocks go on until decided
    return Guess(guess.seconds, guess.low, max(guess.high, guess.seconds + budget), guess.bytes, guess.source)


def _on_cpu(cell: Cell) -> bool:
    return not offloads(config_of(cell.config))


@cache
def _file(path: Path) -> gguf_file.GgufFile:
    return gguf_file.read(path)


def _row(cell: Cell, state: str, guess: Guess) -> Iterator[str]:
    takes = clock_text(guess.seconds) if state in _RUNS else "-"
    head = f"{cell.id:12}  {state:5}  {takes:>12}  {size_text(guess.bytes):>8}  "
    lines = textwrap.wrap(cell.label, _width() - _INDENT, break_on_hyphens=False) or [""]
    yield head + lines[0]
    yield from (" " * len(head) + line for line in lines[1:])


def _total(plan: Plan, root: Path) -> Iterator[str]:
    todo = plan.todo
    if not todo:
        yield "Nothing to run: every cell is stored."
        return
    low, middle, high = plan.seconds
    need = sum(plan.guesses[cell.id].bytes for cell in todo)
    free = shutil.disk_usage(next(place for place in (root, *root.absolute().parents) if place.exists())).free
    yield from _wrapped([
        f"{len(todo)} to run: about {clock_text(middle)} ({clock_text(low)} to {clock_text(high)}), "
        f"{size_text(need)} in {root}, where {size_text(free)} are free"
        + ("" if need < free else "; that is not enough, free some or give another folder with results=FOLDER")
    ])  # fmt: skip
    wide = {cell.model_path: cell for cell in todo if cell.config["measure"].get("sharp")}
    for path, cell in wide.items():
        runs = engine(cell.engine)
        if not runs.is_wide(_file(path)):
            yield from _wrapped([f"F16 weights of {cell.config['model']['name']}, unless they are there already: "
                                 f"{size_text(runs.wide_bytes(_file(path)))} in the user's cache (measure.sharp=false "
                                 "leaves them out)"])  # fmt: skip


def _prompts(plan: Plan) -> Iterator[str]:
    """Of each file of prompts how many there are, and how many of them the cells decode."""
    sets = {config.prompts.path: config.prompts.items for config in plan.configs if config.prompts.path}
    for path, items in sets.items():
        name = Path(path).name
        used = {item["id"] for cell in plan.cells if (own := cell.config.get("prompts") or {}).get("path") == name
                for item in own["items"]}  # fmt: skip
        classes = list(dict.fromkeys(item["class"] for item in items))
        yield (f"prompts of {name}: {len(used)} of {len(items)} are decoded, {len(classes)} "
               f"class{'es' if len(classes) > 1 else ''} ({', '.join(classes[:_CLASSES])}"
               f"{', ..' if len(classes) > _CLASSES else ''}); measure.per_class=N takes N of each")  # fmt: skip


def _sources(plan: Plan) -> Iterator[str]:
    """Where the minutes come from, each source once with its number of cells."""
    found: dict[str, int] = {}
    for cell in plan.todo:
        words = plan.costs.told(plan.guesses[cell.id].source, _on_cpu(cell))
        found[words] = found.get(words, 0) + 1
    for words, count in found.items():
        yield f"minutes of {count} of {len(plan.todo)}: {words}"


def _wrapped(lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield from textwrap.wrap(line, _width(), subsequent_indent="  ", break_on_hyphens=False,
                                 break_long_words=False)  # fmt: skip


def _width() -> int:
    return max(min(shutil.get_terminal_size((100, 24)).columns, 160), _INDENT + 20)


def size_text(count: float) -> str:
    """Bytes as a person reads them: `45 kB`, `1.2 GB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.0f} kB"
