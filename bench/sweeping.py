"""The verbs `sweep` and `all`: measure, or show what would be measured.

The engine's libraries are loaded before all others, and each step imports what it needs, so that a help comes at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.plain_text import plain_lines, plain_text

if TYPE_CHECKING:
    from bench.plan.settings import Config

ALL_HELP = "[KEY=VALUE ..]\n\nThe sweep of configs/experiment/pti.yaml, the report, and the verdicts."
HELP = """KEY=VALUE[,VALUE..] ..

Every combination of the values is a cell: a contrast with the baseline, measured once and kept. The same command again
measures what is missing or failed. Examples:
  streams=1,2,3,4
  method=stagger,packed temperature=0,0.3,0.7 model=gguf model.path=FILE
  +experiment=pti --plan
  engine.build=stock,FOLDER           a build on trial: the first is the baseline's
  treatment.engine.type_k=q8_0        a setting on trial
  engine.server=llama-server treatment.engine.server="llama-server --spec-type ngram-mod"   a server on trial
  measure.until=0.05 measure.budget=10   further blocks until a cell is decided, at most so many minutes each
  launcher=submitit launcher.partition=NAME   on the hosts of a cluster (docs/launchers.md); launcher=ray
"""


def main(rest: list[str]) -> int:
    """Measure what is missing; returns 1 where a cell failed or was left, else 0."""
    words = [word for word in rest if word not in ("-h", "--help")]
    if len(words) < len(rest):
        from bench.plan.manual import manual

        found = manual(words)
        print("" if words else f"usage: python -m bench sweep {HELP}\n", found, sep="")
        return 0
    if _shown(rest):
        return 0
    code, _, folders = _run_sweep(rest)
    if folders:
        from rich.console import Console

        from bench.report.terminal.speedups import print_speedups
        from bench.stored import judge_stored

        print_speedups(judge_stored(folders), Console())
    return code


def _shown(rest: list[str]) -> bool:
    """Whether a sweep was asked to show something in place of running, which is printed."""
    lines = _shows(rest)
    for line in lines or ():
        print(plain_lines(line))
    return lines is not None


def _shows(rest: list[str]) -> Iterator[str] | None:
    """The lines of what a sweep is asked to show in place of running; None where it is to run."""
    from bench.plan.options import CONFIG, INFO, PLAN, asked

    found = asked(rest)
    overrides = list(found.overrides)
    if found.show == PLAN:
        from bench.plan.launchers import without

        overrides = without(overrides)  # a plan is this machine's; every other host makes its own
        load_engine(overrides)
        from bench.run.preview import preview

        return preview(overrides)
    if found.show in (CONFIG, INFO):
        from bench.plan.compose import compose_points
        from bench.plan.shown import configurations, information

        configs = compose_points(overrides)
        return configurations(configs, found.package) if found.show == CONFIG else information(configs)
    return None


def _run_sweep(rest: list[str]) -> tuple[int, Config, list[Path]]:
    """Sweep; returns the exit code, the configuration, and the folders of its finished cells."""
    from bench.plan.launchers import is_launched

    if is_launched(rest):
        from bench.launchers.command import run

        return run(rest)
    load_engine(rest)
    from bench.run.sweep import summary, sweep

    outcome, config = sweep(rest)
    print("\n".join(map(plain_text, summary(outcome))), flush=True)
    done = [cell.folder for cell in outcome.cells if cell.state == "done"]
    return (1 if outcome.failed or outcome.newer or outcome.untried else 0), config, done


def load_engine(overrides: Sequence[str]) -> None:
    """The engine's libraries before all others, where llama.cpp is asked for."""
    from pti_loop.load_first import load_first

    if "model.engine=hf" not in overrides:
        load_first()


def everything(rest: list[str]) -> int:
    """The default sweep, then the report over all stored results; returns the larger exit code of the two."""
    from rich.console import Console

    from bench.report.terminal.speedups import print_speedups
    from bench.reporting import judged_of, options, without_collector, write

    chosen = rest if any("experiment=" in word for word in rest) else ["+experiment=pti", *rest]
    if _shown(chosen):
        return 0
    code, config, folders = _run_sweep(chosen)
    with without_collector():
        found = judged_of(options([f"{key}={getattr(config, key)}" for key in ("results", "claims")]))
        print_speedups(found.findings, Console(), {folder.name for folder in folders})
        print(flush=True)
        return max(code, write(found, Path(config.reports), Path(config.results)))
