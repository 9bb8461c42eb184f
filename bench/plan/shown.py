"""What `sweep --cfg job` and `sweep --info` print of the points of a sweep. It plans no cell and asks no device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from bench.errors import UserError, nearest
from bench.plan.manual import group_choices, usual_choices
from bench.plan.settings import KEYS, Config

_LISTED = 40
"""Points that `--info` names one by one."""


def configurations(configs: Sequence[Config], package: str = "") -> Iterator[str]:
    """The configuration of each point as a YAML document, with what tells it from the others in a comment above.

    Raises `UserError` for a part that there is not.
    """
    import yaml

    plain = [_plain(config) for config in configs]
    for place, (values, words) in enumerate(zip(plain, _differences(plain), strict=True), start=1):
        head = f"# point {place} of {len(plain)}" + (f": {words}" if words else "")
        text = yaml.safe_dump(_part(values, package), sort_keys=False, allow_unicode=True, width=1000)
        yield f"{'---' if place > 1 else ''}\n{head}\n{text.removesuffix('...' + chr(10))}".lstrip("\n")


def information(configs: Sequence[Config]) -> Iterator[str]:
    """The points of a sweep, what they were chosen from, and what reads them."""
    usual = usual_choices()
    yield f"{len(configs)} point{'s' if len(configs) != 1 else ''}"
    words = list(_differences([_plain(config) for config in configs]))
    for place, told in enumerate(words[:_LISTED], start=1):
        yield f"  {place}: {told or 'everything as in the groups'}"
    if len(words) > _LISTED:
        yield f"  and {len(words) - _LISTED} more; --cfg job shows each"
    yield "groups, files of configs/"
    for name, choices in group_choices().items():
        yield f"  {name}: {', '.join(choices)}" + (f" (usual: {usual[name]})" if name in usual else "")
    yield "keys: `python -m bench sweep --help`; cells, minutes and disk: `python -m bench sweep --plan`"
    yield ", ".join(f"{name} {version(name)}" for name in ("hydra-core", "omegaconf"))


def _plain(config: Config) -> dict[str, Any]:
    """A configuration as it would be written."""
    values = asdict(config)
    values["method"] = {"name": config.method.name, **config.method.parameters}
    del values["points"]
    return values


def _differences(plain: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What each of some configurations has otherwise than any other, as overrides."""
    flat = [dict(_leaves(values)) for values in plain]
    names = list(dict.fromkeys(name for values in flat for name in values))
    told = [name for name in names if len({str(values.get(name)) for values in flat}) > 1]
    for values in flat:
        yield " ".join(f"{name}={_short(values[name])}" for name in told if name in values)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}.."


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _part(values: Mapping[str, Any], package: str) -> Any:
    found: Any = values
    for name in filter(None, package.split(".")):
        if not isinstance(found, Mapping) or name not in found:
            raise UserError(f"--package {package}: the configuration has no such part; {nearest(package, KEYS)}")
        found = found[name]
    return found
