"""Writes docs/calibration.md: how often the intervals hold a truth that was chosen, and how often verdicts are wrong.

    python -m tests.calibration.write_page [CONTRASTS]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from bench.judge.measure.estimands import ENOUGH
from tests.calibration import stopping
from tests.calibration.advice import advised_machines
from tests.calibration.contexts import with_contexts_known
from tests.calibration.rates import Rates, measure
from tests.calibration.simulation import NOISES, TEXTS, normal

PAGE = Path(__file__).resolve().parents[2] / "docs" / "calibration.md"
DESIGNS = {"3 prompts": (3, 1), "6 prompts (default)": (6, 1), "30 prompts, 2 blocks each (thorough)": (30, 2)}
COUNT = 1000
HEAD = """# Calibration

How often an interval holds a truth that was chosen, and how often a verdict is wrong, counted over simulated contrasts.
`python -m tests.calibration.write_page` makes this page; a small size of it runs with the tests. The times are made by
numpy alone (`tests/calibration/simulation.py`), and go through the judge's own estimator. {count} contrasts a line, so
a coverage of 95 % is known to {error:.1f} points at two standard errors. The true ratio is 1.10 unless the line says
another.

*Reproduced* and *refuted* are the verdicts on a claim that lies exactly at its edge, and should be below 2.5 % each.
"""


def page(count: int) -> str:
    """The page from `count` contrasts a line."""
    return "\n".join([
        HEAD.format(count=count, error=200 * np.sqrt(0.95 * 0.05 / count)), *_noises(count), *_texts(count),
        *_effects(count), *_power(count), *_contexts(count), *_advice(), *_stopping(count),
    ])  # fmt: skip


def _line(*words: str) -> str:
    return f"| {' | '.join(words)} |"


def _share(value: float) -> str:
    return "does not speak" if np.isnan(value) else f"{100 * value:.1f} %"


def _table(head: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    return ["", _line(*head), _line(*["---"] * len(head)), *(_line(*row) for row in rows), ""]


COLUMNS = ("coverage, these texts", "coverage, texts like these", "reproduced", "refuted", "half width, these texts",
           "half width, texts like these", "half width with stalls in it")  # fmt: skip


def _row(found: Rates) -> list[str]:
    halves = (found.half_these, found.half_like, found.half_plain)
    return [*map(_share, (found.these, found.like_these, found.reproduced, found.refuted)),
            *("n/a" if np.isnan(half) else f"{100 * half:.1f} %" for half in halves)]  # fmt: skip


def _noises(count: int) -> list[str]:
    rows = [[name, design, *_row(measure(1, count, noise, TEXTS["alike (sd 0.03)"], *size))]
            for name, noise in NOISES.items() for design, size in DESIGNS.items()]  # fmt: skip
    return ["## Noise", "", "An arm that guesses nothing, on texts whose effects are alike.",
            *_table(("noise", "design", *COLUMNS), rows)]  # fmt: skip


def _texts(count: int) -> list[str]:
    rows = [[name, design, *_row(measure(2, count, NOISES["independent"], texts, *size, by_text=True))]
            for name, texts in TEXTS.items() for design, size in DESIGNS.items()]  # fmt: skip
    told = (f"A drafter, whose gain depends on the text. With fewer than {ENOUGH} prompts its rows do not speak of "
            "texts like these.")  # fmt: skip
    return ["## Texts", "", told, *_table(("effect between texts", "design", *COLUMNS), rows)]


def _effects(count: int) -> list[str]:
    rows = [[f"{effect:g}", *_row(measure(3, count, NOISES["stalls"], TEXTS["alike (sd 0.03)"], 6, effect=effect))]
            for effect in (0.9, 0.97, 1.0, 1.03, 1.1, 1.3, 2.0)]  # fmt: skip
    return ["## Size of the effect", "", "Six prompts, with stalls.", *_table(("true ratio", *COLUMNS), rows)]


def _power(count: int) -> list[str]:
    rows = []
    for name, noise in NOISES.items():
        for effect in (1.05, 1.1):
            found = measure(4, count, noise, TEXTS["alike (sd 0.03)"], 6, effect=effect)
            rows.append([name, f"{effect:g}", _share(found.seen_plain), _share(found.seen),
                         f"{100 * found.half_plain:.1f} %", f"{100 * found.half_these:.1f} %"])  # fmt: skip
    head = ("noise", "true ratio", "seen, with stalls and over prompts", "seen, these texts", "half width before",
            "half width")  # fmt: skip
    return ["## Power", "", "Six prompts, the same runs: how often the interval excludes 1.00.", *_table(head, rows)]


def _contexts(count: int) -> list[str]:
    rows = [[f"{100 * sd:g} %", *map(_share, with_contexts_known(5, max(count // 12, 20), sd))]
            for sd in (0, 0.005, 0.01)]  # fmt: skip
    told = ("A machine of twelve cells whose contexts differ, 1 % of noise a run: coverage of the intervals for these "
            "texts without and with the spread that A/A of all cells shows.")  # fmt: skip
    return ["## Contexts", "", told,
            *_table(("between contexts", "without", "with"), rows)]  # fmt: skip


def _advice() -> list[str]:
    slow, fast = advised_machines(6, 200, 0.98, 12, (6, 1)), advised_machines(7, 200, 1.2, 1, (30, 2))
    rows = [["twelve arms of 0.98, six prompts each", f"{slow} of 200"],
            ["one arm of 1.2 among eleven of 0.98, thorough", f"{fast} of 200"]]  # fmt: skip
    return ["## Advice", "", "How often `advise` says to use one of the arms, over simulated machines.",
            *_table(("machine", "use"), rows)]  # fmt: skip


STOPPINGS = [("independent", 1.0), ("autocorrelated", 1.0), ("stalls", 1.0), ("heavy tails", 1.0),
             ("independent", 1.05), ("all together", 1.1)]  # fmt: skip


def _stopping(count: int) -> list[str]:
    rows = []
    for name, effect in STOPPINGS:
        texts = normal(0.0) if effect == 1.0 else TEXTS["alike (sd 0.03)"]
        found = stopping.measure(8, count, NOISES[name], texts, 6, effect, 0.02)
        rows.append([name, f"{effect:g}", _share(found.these), _share(found.like_these), _share(found.students),
                     _share(found.wrong), _share(found.students_wrong), _share(found.decided), f"{found.passes:g}",
                     f"{100 * found.half_width:.1f} %"])  # fmt: skip
    head = ("noise", "true ratio", "coverage, these texts", "coverage, texts like these", "coverage of Student's there",
            "wrong side", "wrong side by Student's", "decided", "passes, median", "half width, median")  # fmt: skip
    told = (f"Six prompts, `measure.until=0.02`, and a budget of {stopping.MOST} passes: cells end by the run's own "
            "rule, and their intervals are the always-valid ones. Beside them Student's at the same end, which whoever "
            "peeks would print. Where the true ratio is 1.00 it is that of every text, and either side is wrong.")
    return ["## Blocks until it is decided", "", told, *_table(head, rows)]


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(int(sys.argv[1]) if len(sys.argv) > 1 else COUNT), encoding="utf-8")


if __name__ == "__main__":
    main()
