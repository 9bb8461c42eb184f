"""`python -m bench rerun CELL`: measures one stored cell again from its record alone, and says whether both agree.

What is measured comes from the record; the machine, the build and the time are those of here and now, and where they
differ that is said. It judges nothing: both cells go through the same judge. The record stays as it is.
"""

from __future__ import annotations

import glob
import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.judge.findings import Findings
from bench.plain_text import plain_text
from bench.plan import served
from bench.plan.cells import Cell
from bench.plan.engines import ENGINES
from bench.plan.model_files import model_path
from bench.plan.settings import Config
from bench.records.cells import REFERENCE, DamagedCell, StoredCell, read_cell
from bench.records.identity import cell_id
from bench.records.manifest import build_of
from bench.stored import judge_stored
from pti_loop.gguf.file_hash import sha256_of

OTHER_BUILD = "treatment.engine.build"
KEYS = ("results", "model.path", "machine", "wait", "limit", OTHER_BUILD)


@dataclass(frozen=True)
class Figure:
    """One ratio of a cell with what it concludes."""

    name: str
    value: float
    low: float
    high: float
    conclusion: str
    """Empty where intervals that meet are all that can be said."""

    @property
    def text(self) -> str:
        """Ratio, interval and conclusion."""
        words = f", {self.conclusion}" if self.conclusion else ""
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f}{words})"


def main(rest: list[str]) -> int:
    """Measure and compare. Returns 0 where both come to the same conclusions, 1 where they do not."""
    words = [word for word in rest if "=" not in word]
    given = _settings([word for word in rest if "=" in word])
    if len(words) != 1:
        raise UserError("rerun measures one cell; give its folder or its id, as `python -m bench rerun 0123456789ab`")
    folder = find(words[0])
    stored = read_cell(folder)
    if isinstance(stored, DamagedCell):
        raise UserError(f"the cell {folder} is damaged ({stored.reason}), so there is nothing to compare with")
    if stored.status["state"] != "done":
        raise UserError(f"the cell {folder} is {stored.status['state']}; a sweep measures it again")
    keep = given.get("results")
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as root:
        again = _measure(stored, Path(str(root)), given)
        found = read_cell(again)
        if isinstance(found, DamagedCell):
            raise UserError(f"the cell that was just measured is damaged ({found.reason}); run the same command again")
        theirs, ours = judge_stored([folder], 1), judge_stored([again], 1)
        lines, agree = compare(theirs, ours)
        print("\n".join(map(plain_text, [*_differences(stored, found), *lines])), flush=True)
    return 0 if agree else 1


def _settings(words: Sequence[str]) -> dict[str, str]:
    given = {}
    for word in words:
        key, _, value = word.partition("=")
        if (key not in KEYS and not key.startswith("method.")) or not value:
            raise UserError(f"'{word}' is no setting of rerun; it takes {', '.join(KEYS)} and method.KEY=FILE")
        given[key] = value
    return given


def find(word: str) -> Path:
    """The folder of a cell: a path, or an id below results/. Raises `UserError` where there is none, or several."""
    path = Path(word)
    if (path / "status.json").exists():
        return path.resolve()
    root = Path(Config().results)
    name = glob.escape(path.name)
    found = [one.parent for below in ("*", f"{REFERENCE}/*") for one in root.glob(f"{below}/{name}/status.json")]
    if path.name != word or len(found) != 1:
        more = f": {', '.join(map(str, found))}" if found else ""
        raise UserError(f"'{word}' is the folder or id of {len(found) or 'no'} cells{more}; give the folder of one")
    return found[0].resolve()


def _measure(stored: StoredCell, root: Path, given: Mapping[str, str]) -> Path:
    """Run the cell below `root`; returns its folder. Raises `UserError` where it cannot be run, or fails."""
    from bench.host import cpus, provenance
    from bench.run import engines
    from bench.run.progress import Progress
    from bench.run.sweep import locks, run_cell

    if stored.config.get("kind") == served.KIND:
        raise UserError(f"the cell {stored.cell} is of servers, of whose commands a record keeps no folder; measure it "
                        "again with the same sweep, into another folder with results=FOLDER")  # fmt: skip
    config = _config(stored, given)
    cpus.check_threads(config.engine.threads)
    runs = engines.engine(config.model.engine)
    runs.check_installed()
    path, files, builds = _weights(stored, config, given), _files(stored, given), _builds(stored, given)
    environment = provenance.environment(given.get("machine", ""), config.engine.threads, runs.build(),
                                         ENGINES[config.model.engine].packages)  # fmt: skip
    values = {key: value for key, value in stored.config.items() if key not in ("schema", "machine")}
    if "peers" in values:  # where the programs lie is no part of the record
        values["peers"] = values["peers"] | {"llama_bench": "", "llama_batched_bench": ""}
    machine, name = str(environment["machine"]["name"]), cell_id(values, environment["engine"]["build"])
    folder = root / machine / name
    cell = Cell(name, str(values.get("kind")), values | {"machine": machine}, folder, path, {}, files, builds)
    with locks([config]), Progress([cell], 0, config.limit) as progress:
        progress.start(cell)
        status = run_cell(cell, environment, progress)
        progress.finish(cell, status)
    if status["state"] != "done":
        raise UserError(f"the cell cannot be measured again here: {status['reason']}")
    return folder


def _config(stored: StoredCell, given: Mapping[str, str]) -> Config:
    from bench.run.worker import config_of

    try:
        config = config_of(stored.config)
        config.wait, config.limit = (float(given.get(key, 0)) for key in ("wait", "limit"))
    except (TypeError, KeyError, ValueError) as error:
        raise UserError(f"the record cannot be run again by this version ({error})") from error
    config.model.path = given.get("model.path")
    return config


def _weights(stored: StoredCell, config: Config, given: Mapping[str, str]) -> Path:
    """The model's file, which has to be the one of the record."""
    name = (stored.config.get("model") or {}).get("path")
    if not given.get("model.path") and not config.model.file:
        raise UserError(f"the cell was measured with the file {name}; give it with model.path=FILE")
    path: Path = model_path(config)
    told = stored.config.get("weights") or (stored.facts.get("model") or {}).get("sha256")
    if not path.is_file():
        raise UserError(f"there is no file {path}; give the one of the record, {name}, with model.path=FILE")
    _check_hash(path, told, "model.path")
    return path


def _files(stored: StoredCell, given: Mapping[str, str]) -> dict[str, Path]:
    """The files that the method reads beside the model."""
    found = {}
    parameters = (stored.config.get("method") or {}).get("parameters") or {}
    for key, told in (stored.config.get("files") or {}).items():
        if f"method.{key}" not in given:
            raise UserError(f"the method read the file {parameters.get(key)}; give it with method.{key}=FILE")
        found[key] = Path(given[f"method.{key}"]).absolute()
        _check_hash(found[key], told, f"method.{key}")
    return found


def _builds(stored: StoredCell, given: Mapping[str, str]) -> dict[str, str]:
    """The build that was on trial, which has to be the one of the record by its files."""
    from bench.host import builds

    told = ((stored.config.get("treatment") or {}).get("engine") or {}).get("build")
    if not told:
        return {}
    if OTHER_BUILD not in given:
        raise UserError(f"the build {told} was on trial; give its folder with {OTHER_BUILD}=FOLDER")
    found = builds.facts(given[OTHER_BUILD])["build"]
    if found != told:
        raise UserError(f"{given[OTHER_BUILD]} is the build {found}, and {told} was on trial; give the right one with "
                        f"{OTHER_BUILD}=FOLDER")  # fmt: skip
    return {"treatment": given[OTHER_BUILD]}


def _check_hash(path: Path, told: Any, key: str) -> None:
    try:
        ours = sha256_of([path])
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); give another file with {key}=FILE") from error
    if told and ours != told:
        raise UserError(f"{path} has the hash {ours[:12]}, the record's {str(told)[:12]}: another file; give the right "
                        f"one with {key}=FILE")  # fmt: skip


def _differences(stored: StoredCell, found: StoredCell) -> list[str]:
    """Sentences on what is not as in the record, and on a record that proves nothing."""
    told = []
    builds = build_of(stored.env), build_of(found.env)
    if builds[0] != builds[1]:
        told.append(f"another build of the engine: {builds[0]} in the record, {builds[1]} here")
    if stored.machine != found.machine:
        told.append(f"another machine: {stored.machine} in the record, {found.machine} here")
    return told + ([stored.note] if stored.note else [])


def compare(theirs: Findings, ours: Findings) -> tuple[list[str], bool]:
    """A line for each figure of both, and whether all conclusions are the same."""
    left, right = _figures(theirs), _figures(ours)
    lines, agree = [], bool(left) and left.keys() == right.keys()
    for name in [*left, *(name for name in right if name not in left)]:
        one, other = left.get(name), right.get(name)
        if one is None or other is None:
            lines.append(f"{name}: only {'in the record' if other is None else 'here'}")
            continue
        same = one.conclusion == other.conclusion if one.conclusion else _meet(one, other)
        agree &= same
        lines.append(f"{name}: {one.text} in the record, {other.text} here: "
                     f"{'the same' if same else 'NOT the same'} conclusion"
                     + ("" if _meet(one, other) else ", intervals apart"))  # fmt: skip
    return [*lines, "the two agree" if agree else "the two do NOT agree"], agree


def _meet(one: Figure, other: Figure) -> bool:
    if any(map(math.isnan, (one.low, one.high, other.low, other.high))):
        return math.isclose(one.value, other.value, rel_tol=0.1)
    return one.low <= other.high and other.low <= one.high


def _figures(findings: Findings) -> dict[str, Figure]:
    found = [
        Figure(f"speed-up, {row['scope']}", row["speedup"], row["ci_low"], row["ci_high"],
               f"{row['direction']}, output {row['lossless']}" + (", void" if row.get("void") else ""))
        for row in (*findings.speedup, *findings.trials) if row["prompt_class"] == "all"
    ]  # fmt: skip
    found += [Figure(f"step cost, {row['layout']}, width {row['width']}", row["relative_cost"], row["ci_low"],
                     row["ci_high"], "") for row in findings.step_cost if row["width"] > 1]  # fmt: skip
    return {one.name: one for one in found}
