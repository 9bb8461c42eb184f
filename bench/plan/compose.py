"""From overrides to the points of a sweep, by Hydra: groups, experiments, and every combination of values.

The group `method` comes from what the methods declare (`bench.plan.method_group`). It knows nothing about cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, nearest
from bench.plan import method_group
from bench.plan.config import CONFIGS, KEYS, Config, MethodConfig, check
from bench.plan.treatment import check_treatment, paired
from pti_loop.parameters import ParameterError, declared, resolve

if TYPE_CHECKING:
    from omegaconf import DictConfig


MOST_POINTS = 10_000
MOST_LETTERS = 100_000


@cache
def _hydra() -> tuple[Callable[..., DictConfig], Callable[..., AbstractContextManager[None]]]:
    """Hydra's compose API, with the schema registered. Imported late: it costs more than printing the help."""
    from hydra import compose, initialize_config_dir
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    store = ConfigStore.instance()
    schema = OmegaConf.structured(Config)
    schema.method = {}  # each method's own node takes this place
    store.store(name="schema", node=schema)
    for name, node in method_group.nodes().items():
        store.store(group="method", name=name, node=node)
    return compose, initialize_config_dir


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
        return [list(point) for batch in batches for point in batch]
    except OverrideParseException as error:
        raise UserError(f"override '{error.override}' cannot be read: {_first_line(error)}; write key=value") from error
    except (HydraException, ValueError, ArithmeticError) as error:
        told = " ".join(overrides)[:80]
        raise UserError(f"'{told}' cannot be swept: {_first_line(error)[:200]}; write key=value,value") from error


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


def compose_points(overrides: list[str]) -> list[Config]:
    """Configurations of a sweep, checked, in order and without repeats.

    An experiment's `points` are lines of overrides; what is given by hand comes after them and wins.
    Raises `UserError` naming the unknown key or bad value and the nearest valid one.
    """
    from omegaconf import OmegaConf

    compose, initialize = _hydra()
    overrides = paired(["+" + item if item.startswith("experiment=") else item for item in overrides])
    # configs/claims is a folder, so Hydra would take claims=FILE for the choice of a group.
    sheets = [item.split("=", 1)[1] for item in overrides if item.startswith("claims=")]
    overrides = [item for item in overrides if not item.startswith("claims=")]
    found: dict[str, Config] = {}
    with initialize(config_dir=str(CONFIGS), version_base="1.3"):
        heads = [_compose(compose, point) for point in expand(overrides)]
        own = [item for item in overrides if not item.lstrip("+").startswith("experiment")]
        lines = [line.split() for head in heads[:1] for line in head.points] if heads else []
        if lines:
            names = {item.split("=", 1)[0].lstrip("+~") for item in own}
            heads = []
            for line in lines:
                kept = [item for item in line if item.split("=", 1)[0] not in names]
                experiment = [item for item in overrides if item not in own]
                heads += [_compose(compose, point) for point in expand([*experiment, *kept, *own])]
        for head in heads:
            head.points, head.claims = [], sheets[-1] if sheets else head.claims
            config = _checked(head)
            found.setdefault(OmegaConf.to_yaml(head, sort_keys=True), config)
    configs = list(found.values())
    _check_streams(overrides, configs)
    return configs


def _checked(head: DictConfig) -> Config:
    """The configuration as an object. Raises `UserError` where a value is of another kind than its setting."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        config = OmegaConf.to_object(head)
        assert isinstance(config, Config)
        config.method = _method(OmegaConf.to_container(head.method))
        check(config)
        check_treatment(config)
    except (OmegaConfBaseException, TypeError, KeyError, ValueError, AttributeError) as error:
        raise UserError(f"a setting cannot be what it is given as: {_first_line(error)}; see the settings and their "
                        "defaults in bench/plan/config.py") from error  # fmt: skip
    return config


def _method(values: Any) -> MethodConfig:
    """The method with all its parameters. Raises `UserError` for one that it does not have, or a bad value."""
    given = {key: value for key, value in dict(values).items() if key != "name"}
    try:
        return MethodConfig(str(values["name"]), dict(resolve(str(values["name"]), given)))
    except ParameterError as error:
        raise UserError(f"{error}; {nearest(error.given, error.valid)}" if error.valid else str(error)) from error


def _check_streams(overrides: list[str], configs: list[Config]) -> None:
    """Raise `UserError` when streams were asked for and no method of the sweep has any."""
    given = [item for item in overrides if item.startswith("streams=") and item != "streams=1"]
    if given and not any(config.method.spec.answers != "one" for config in configs):
        method = configs[0].method
        own = ", ".join(method.parameters) or "no parameters"
        raise UserError(f"{given[0]}: method={method.name} decodes one answer and has no streams; leave streams out, "
                        f"it has {own}")  # fmt: skip


def _compose(compose: Callable[..., DictConfig], overrides: list[str]) -> DictConfig:
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        return compose(config_name="config", overrides=overrides)
    except (HydraException, OmegaConfBaseException, ValueError, TypeError, AttributeError) as error:
        raise UserError(_explain(error, overrides)) from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _unknown(overrides: list[str]) -> str:
    """A sentence about the first key that there is not; empty when all are known."""
    methods = [item.split("=", 1)[1] for item in overrides if item.startswith("method=")]
    chosen = methods[-1] if methods else MethodConfig.name
    for override in overrides:
        key = override.split("=", 1)[0].lstrip("+~")
        if key == "method.name":
            return f"{override}: a method is chosen as a whole; write method={override.partition('=')[2]}"
        if key.startswith("method.") and chosen in declared():
            name, own = key.removeprefix("method."), method_group.names(chosen)
            if name not in own:
                return f"method={chosen} has no parameter '{name}'; {nearest(name, own)}"
        elif key not in KEYS and key != "method" and not (CONFIGS / key).is_dir():
            return f"unknown key '{key}'; {nearest(key, KEYS)}"
    return ""


def _explain(error: BaseException, overrides: list[str]) -> str:
    """Hydra's error as one sentence with the nearest valid name."""
    text = str(error) + " " + str(error.__cause__ or "")
    option = re.search(r"Could not find '([^']+)'", text)
    if option and "/" in option[1]:
        group, choice = option[1].rsplit("/", 1)
        if group == "method":
            return f"method={choice}: there is no such method; {nearest(choice, declared())}"
        valid = [path.stem for path in (CONFIGS / group).glob("*.yaml")]
        return f"{group}={choice}: there is no such {group} in configs/{group}; {nearest(choice, valid)}"
    unknown = _unknown(overrides)
    if unknown:
        return unknown
    added = re.search(r"append your config with \+?'?([\w.]+)|key '([\w.]+)' already", text)
    if added or "already at" in text:
        return f"{_first_line(error)}; the key exists, so write it without the '+'"
    place = re.search(r"full_key: ([\w.]+)", text)
    names = [item for item in overrides if place and item.split("=", 1)[0] == place[1]]
    bad = next(iter(names), next((item for item in overrides if item.split("=", 1)[0] in text), ""))
    if "is not a ListConfig" in text and bad:
        return f"{bad}: a list is wanted; write {bad.replace('=', '=[', 1)}]"
    return f"{bad + ': ' if bad else ''}{_first_line(error.__cause__ or error)}"
