"""Writes docs/calibration.md: how often the intervals hold a truth that was chosen, and how often verdicts are wrong.

    python -m tests.calibration.write_page [CONTRASTS] [--only SECTION]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.judge.measure.estimands import ENOUGH
from tests.calibration import stopping
from tests.calibration.advice import advised_machines
from tests.calibration.contexts import with_contexts_known
from tests.calibration.own_stalls import blamed
from tests.calibration.patterns import PATTERNS
from tests.calibration.patterns import wrong as wrong_by_order
from tests.calibration.rates import Rates, measure
from tests.calibration.several import wrong
from tests.calibration.shares import UNLIKE, coverage
from tests.calibration.simulation import NOISES, TEXTS, Noise, normal

PAGE = Path(__file__).resolve().parents[2] / "docs" / "calibration.md"
DESIGNS = {"3 prompts": (3, 1), "6 prompts (default)": (6, 1), "30 prompts, 2 blocks each (thorough)": (30, 2)}
FEW = {"2 prompts": (2, 1), "1 prompt, 4 blocks": (1, 4)}
COUNT = 1000
HEAD = """# Calibration

How often an interval holds a truth that was chosen, and how often a verdict is wrong, counted over simulated contrasts.
`python -m tests.calibration.write_page` makes this page; a small size of it runs with the tests. The times are made by
numpy alone (`tests/calibration/simulation.py`), and go through the judge's own estimator. {count} contrasts a line, so
a coverage of 95 % is known to {error:.1f} points at two standard errors. The true ratio is 1.10 unless the line says
another.

*Reproduced* and *refuted* are the verdicts on a claim that lies exactly at its edge, and should be below 2.5 % each.
They take 97 and 99 % intervals, so 1.5 and 0.5 % are expected.
"""


def page(count: int) -> str:
    """The page from `count` contrasts a line."""
    head = HEAD.format(count=count, error=200 * np.sqrt(0.95 * 0.05 / count))
    return "\n".join([head, *(line for made in SECTIONS.values() for line in made(count))])


def with_section(text: str, name: str, count: int) -> str:
    """A page with one section made again. Raises KeyError for a section that there is not."""
    made = "\n".join(SECTIONS[name](count))
    before, _, rest = text.partition(f"## {name}\n")
    _, mark, after = rest.partition("\n## ")
    return before + made + (mark + after if mark else "")


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
    rows = [[name, design, *_row(measure([1, line, place], count, noise, TEXTS["alike (sd 0.03)"], *size))]
            for line, (name, noise) in enumerate(NOISES.items())
            for place, (design, size) in enumerate((DESIGNS | FEW).items())]  # fmt: skip
    told = ("An arm that guesses nothing, on texts whose effects are alike. One prompt speaks of itself. What the "
            "first run of a block takes more or less cancels in the ratio, since half of the blocks begin with either "
            "arm, but not in the differences between runs and blocks that the noise is made of: its lines, and those "
            "of all together, are held more often. A class of few blocks has no such balance, and needs that width.")
    return ["## Noise", "", told, *_table(("noise", "design", *COLUMNS), rows)]


def _texts(count: int) -> list[str]:
    rows = [[name, design, *_row(measure([2, line, place], count, NOISES["independent"], texts, *size, by_text=True))]
            for line, (name, texts) in enumerate(TEXTS.items())
            for place, (design, size) in enumerate(DESIGNS.items())]  # fmt: skip
    told = (f"A drafter, whose gain depends on the text. With fewer than {ENOUGH} prompts its rows do not speak of "
            "texts like these.")  # fmt: skip
    return ["## Texts", "", told, *_table(("effect between texts", "design", *COLUMNS), rows)]


def _effects(count: int) -> list[str]:
    rows = [[f"{effect:g}", *_row(measure([3, line], count, NOISES["stalls"], TEXTS["alike (sd 0.03)"], 6,
                                          effect=effect))]
            for line, effect in enumerate((0.9, 0.97, 1.0, 1.03, 1.1, 1.3, 2.0))]  # fmt: skip
    return ["## Size of the effect", "", "Six prompts, with stalls.", *_table(("true ratio", *COLUMNS), rows)]


def _several(count: int) -> list[str]:
    rows = [[name, str(several), *map(_share, wrong(8, count, several, NOISES[name], 6))]
            for name in ("independent", "bursts of load") for several in (1, 2, 4)]  # fmt: skip
    told = ("A claim about any of several set-ups, a row each, all of them at its edge: the claim as a whole. Holm's "
            "step-down shares the error of a refutation among the rows.")  # fmt: skip
    return ["## Several rows", "", told, *_table(("noise", "rows", "reproduced", "refuted"), rows)]


def _power(count: int) -> list[str]:
    rows = []
    for line, (name, noise) in enumerate(NOISES.items()):
        for effect in (1.05, 1.1):
            found = measure([4, line], count, noise, TEXTS["alike (sd 0.03)"], 6, effect=effect)
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


SHARES = [(0.5, 0.1), (0.5, 0.2), (0.7, 0.0), (0.8, 0.05), (0.8, 0.2), (0.95, 0.03), (0.95, 0.08), (0.98, 0.05)]


def _shares(count: int) -> list[str]:
    rows = []
    for share, sd in SHARES:
        for texts in (3, 6, 12, 24):
            alone, over, half = coverage(9, 3 * count, texts, 60, share, sd)
            _, unlike, _ = coverage(9, 3 * count, texts, 60, share, sd, UNLIKE)
            rows.append([f"{share:g}", f"{sd:g}", str(texts), *map(_share, (alone, over, unlike)), f"{100 * half:.1f}"])
    told = ("Acceptance of 60 guesses a text, where texts differ in it: coverage of Wilson's interval, which takes all "
            "guesses for independent, and of the one over texts that the tables have, where texts are alike in length "
            f"and where the logarithm of their guesses has a spread of {UNLIKE:g}. Shares are held more often than 95 "
            "% where texts are alike in them, since guesses are never taken to say more than independent ones do, and "
            "where nearly all is accepted: few texts then do not show the rare one in which it is not, and the "
            "interval allows for it.")
    head = ("share", "sd between texts", "texts", "every guess by itself", "over texts", "over texts of unlike length",
            "half width, points")  # fmt: skip
    return ["## Acceptance", "", told, *_table(head, rows)]


def _own(count: int) -> list[str]:
    lines = {"stalls from outside": Noise(stall_rate=0.15)}
    lines |= {f"{share:.0%} of the treatment's runs stall by themselves": Noise(own_stalls=share)
              for share in (0.25, 0.5, 0.75)}  # fmt: skip
    designs = {"6 prompts (default)": (6, 1), "12 prompts": (12, 1)}
    rows = [[name, design, *map(_share, blamed(10, count // 2, noise, size))]
            for name, noise in lines.items() for design, size in designs.items()]  # fmt: skip
    told = ("Stalls that only one arm has are its own work and stay in the estimate; those from outside are no arm's. "
            "How often they are taken for an arm's own.")  # fmt: skip
    return ["## Stalls of one arm", "", told, *_table(("stalls", "design", "the treatment's", "the baseline's"), rows)]


def _advice(_: int) -> list[str]:
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


def _patterns(count: int) -> list[str]:
    designs = {name: DESIGNS[name] for name in list(DESIGNS)[1:]}
    rows = [[name, design, *map(_share, wrong_by_order([12, line, place], count // 2, noise, size, leads))]
            for line, (name, (noise, leads)) in enumerate(PATTERNS.items())
            for place, (design, size) in enumerate(designs.items())]  # fmt: skip
    told = ("Disturbances that follow the order of the runs, as no noise above does. How often a claim that lies "
            "exactly at its edge is decided, either way, and how often the control *places* voids the cell. What comes "
            "before the window, as a stall in a prefill, is in no rate, and a level of a whole process in both arms.")
    return ["## Patterns in the order of runs", "", told,
            *_table(("pattern", "design", "decided", "void", "decided and not void"), rows)]  # fmt: skip


SECTIONS: dict[str, Callable[[int], list[str]]] = {
    "Noise": _noises, "Texts": _texts, "Size of the effect": _effects, "Several rows": _several, "Power": _power,
    "Contexts": _contexts, "Patterns in the order of runs": _patterns, "Acceptance": _shares,
    "Stalls of one arm": _own, "Advice": _advice,
    "Blocks until it is decided": _stopping,
}  # fmt: skip


def main() -> None:
    """Write the page, or one section of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.write_page", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=COUNT, metavar="CONTRASTS", help="a line")
    parser.add_argument("--only", choices=SECTIONS, help="make one section again, and leave the others")
    told = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8") if told.only else ""
    PAGE.write_text(with_section(old, told.only, told.count) if told.only else page(told.count), encoding="utf-8")


if __name__ == "__main__":
    main()
