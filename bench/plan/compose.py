"""From overrides to the points of a sweep, by Hydra: groups, experiments, and every combination of values.

The group `method` comes from what the methods declare (`bench.plan.method_group`). It knows nothing about cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench.errors import UserError
from bench.plan import prompt_files, served
from bench.plan.composer import Composer, fingerprint, first_line
from bench.plan.manual import group_choices
from bench.plan.settings import Config
from bench.plan.treatment import paired

MOST_POINTS = 10_000
MOST_LETTERS = 100_000


def expand(overrides: list[str]) -> list[list[str]]:
    """Every combination of the values of comma-separated overrides, by Hydra's own sweeper. Raises `UserError`.

    How many there will be is counted first.
    """
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException, OverrideParseException

    if long := next((item for item in overrides if len(item) > MOST_LETTERS), ""):
        raise UserError(f"override '{long[:60]}..' has {len(long)} letters, at most {MOST_LETTERS} are read")
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
        _check_count(parsed)
        batches = BasicSweeper.split_arguments(parsed, max_batch_size=None)
        sets = group_choices()["prompts"]
        return [prompt_files.by_path(point, sets) for batch in batches for point in batch]
    except OverrideParseException as error:
        raise UserError(f"override '{error.override}' cannot be read: {first_line(error)}; write key=value") from error
    except (HydraException, ValueError, ArithmeticError) as error:
        told = " ".join(overrides)[:80]
        raise UserError(f"'{told}' cannot be swept: {first_line(error)[:200]}; write key=value,value") from error


def _check_count(parsed: list[Any]) -> None:
    """Raise `UserError` where the values of all overrides together make too many points."""
    from hydra.core.override_parser.types import ChoiceSweep, RangeSweep

    total = 1
    for override in parsed:
        swept = override.value()
        count = 1
        if isinstance(swept, RangeSweep):
            start, stop, step = (float(end or 0) for end in (swept.start, swept.stop, swept.step))
            count = int((stop - start) / step)
        elif isinstance(swept, ChoiceSweep):
            count = len(swept.list)
        total *= max(count, 1)
        if total > MOST_POINTS:
            raise UserError(f"{override.input_line} makes {total} points of the sweep, at most {MOST_POINTS} are "
                            "planned; give fewer values, or several sweeps into one folder")  # fmt: skip


def compose_points(overrides: list[str], planned: Callable[[int], None] | None = None) -> list[Config]:
    """Configurations of a sweep, checked, in order and without repeats.

    An experiment's `points` are lines of overrides; what is given by hand comes after them and wins. `planned` is told
    how many points there are before they are composed. Raises `UserError` naming the unknown key or bad value and the
    nearest valid one.
    """
    given = ["+" + item if item.startswith("experiment=") else item for item in served.overrides(overrides)]
    overrides = prompt_files.taken_whole(paired(given))
    # configs/claims is a folder, so Hydra would take claims=FILE for the choice of a group.
    sheets = [item.split("=", 1)[1] for item in overrides if item.startswith("claims=")]
    overrides = [item for item in overrides if not item.startswith("claims=")]
    found: dict[Any, Config] = {}
    with Composer(sheets[-1] if sheets else None) as composer:
        points = expand(overrides)
        lines = composer.lines(points[0]) if points else []
        if lines:
            points = list(_of_experiment(overrides, lines))
        if planned:
            planned(len(points))
        for point in points:
            config = composer.point(point)
            found.setdefault(fingerprint(config), config)
    configs = list(found.values())
    _check_streams(overrides, configs)
    return configs


def _of_experiment(overrides: list[str], lines: list[str]) -> Iterator[list[str]]:
    """The points of an experiment's lines, each with what is given by hand in place of the line's own."""
    own = [item for item in overrides if not item.lstrip("+").startswith("experiment")]
    experiment = [item for item in overrides if item not in own]
    names = {item.split("=", 1)[0].lstrip("+~") for item in own}
    for line in lines:
        kept = [item for item in line.split() if item.split("=", 1)[0] not in names]
        yield from expand([*experiment, *kept, *own])


def _check_streams(overrides: list[str], configs: list[Config]) -> None:
    """Raise `UserError` when streams were asked for and no method of the sweep has any."""
    given = [item for item in overrides if item.startswith("streams=") and item != "streams=1"]
    if given and not any(config.method.spec.answers != "one" or served.is_served(config) for config in configs):
        method = configs[0].method
        own = ", ".join(method.parameters) or "no parameters"
        raise UserError(f"{given[0]}: method={method.name} decodes one answer and has no streams; leave streams out, "
                        f"it has {own}")  # fmt: skip
