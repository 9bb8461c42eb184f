"""What `sweep --help` says: every group with its choices, every key with its usual value and its words.

All of it comes from the declarations of `bench.plan.settings` and of the methods. It knows no key by itself.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, is_dataclass
from typing import Any, get_type_hints

from bench.errors import UserError, nearest
from bench.plan.config import CONFIGS
from bench.plan.settings import KEYS, Config, TreatedEngineConfig, settings
from pti_loop.parameters import Parameter, declared

GROUPS = ("model", "method", "prompts", "measure", "launcher", "experiment")
LEFT = 34
"""Letters of the column of keys."""
OPTIONS = {
    "--plan": "what it would run: cells, ids, minutes, disk; nothing is measured or written",
    "--cfg job": "the whole configuration of every point as YAML; --package KEY takes one part of it",
    "--info": "the points, and what each group has to choose from",
    "--help WORD ..": "only the keys that have one of these words in their name",
}
_TREATED = "treatment.engine."


def group_choices() -> dict[str, list[str]]:
    """What each group has to choose from."""
    found = {name: sorted(path.stem for path in (CONFIGS / name).glob("*.yaml")) for name in GROUPS}
    return found | {"method": list(declared())}


def usual_choices() -> dict[str, str]:
    """The choice of each group where none is given."""
    import yaml

    defaults = yaml.safe_load((CONFIGS / "config.yaml").read_text(encoding="utf-8"))["defaults"]
    return {key: value for one in defaults if isinstance(one, dict) for key, value in one.items()}


def manual(words: Sequence[str] = ()) -> str:
    """All keys, or those that have one of some words in their name. Raises `UserError` where none has."""
    wanted = [word.split("=")[0].lstrip("+-") for word in words]
    parts = [("Options", list(OPTIONS.items())), ("Groups", list(_groups())), ("Keys", list(_keys())),
             ("Parameters of the methods", list(_parameters()))]  # fmt: skip
    kept = [(title, [one for one in rows if not wanted or any(word in one[0] for word in wanted)])
            for title, rows in parts if not wanted or title != "Options"]  # fmt: skip
    if not any(rows for _, rows in kept):
        raise UserError(f"no key of a sweep has '{wanted[0]}' in its name; {nearest(wanted[0], KEYS)}")
    return "\n\n".join(f"{title}\n" + "\n".join(map(_line, rows)) for title, rows in kept if rows)


def _line(row: tuple[str, str]) -> str:
    key, words = row
    width = max(min(shutil.get_terminal_size((100, 24)).columns, 120), 60)
    head = f"  {key} "
    lines = textwrap.wrap(words, width - LEFT, break_on_hyphens=False) or [""]
    if len(head) > LEFT:
        return "\n".join([head.rstrip(), *(" " * LEFT + line for line in lines)])
    return "\n".join([head.ljust(LEFT) + lines[0], *(" " * LEFT + line for line in lines[1:])])


def _groups() -> Iterator[tuple[str, str]]:
    usual = usual_choices()
    for name, choices in group_choices().items():
        more = f"; {usual[name]} where none is given" if name in usual else ""
        yield f"{name}=NAME", ", ".join(choices) + more


def _keys() -> Iterator[tuple[str, str]]:
    """Key with its usual value, and its words. What the treatment has are the engine's keys, told in one row."""
    inner = [name for name in (item for item, _ in settings()) if name.startswith(_TREATED)]
    hints = {name: kind for name, kind in get_type_hints(Config).items()}
    for name, item in settings():
        if name in inner or is_dataclass(hints.get(name)) or name in ("method", "points", _TREATED[:-1]):
            continue
        yield _with_value(name, item), _bounded(str(item.metadata["help"]), item.metadata["choices"],
                                                item.metadata["least"], None)  # fmt: skip
    own = ", ".join(TreatedEngineConfig.__dataclass_fields__)
    yield f"{_TREATED}KEY=VALUE", f"the engine's setting as the treatment alone has it, one difference at a time: {own}"


def _with_value(name: str, item: Field[Any]) -> str:
    value = item.default_factory() if item.default_factory is not MISSING else item.default
    return f"{name}={_told(value)}"


def _told(value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _bounded(words: str, choices: Sequence[str], least: float | None, most: float | None) -> str:
    """Words with what the value may be."""
    limits = [", ".join(choices)] if choices else []
    if least is not None:
        limits.append(f"{least:g} to {most:g}" if most is not None else f"{least:g} or more")
    return f"{words} ({'; '.join(limits)})" if limits else words


def _parameters() -> Iterator[tuple[str, str]]:
    for name, spec in declared().items():
        yield f"method={name}", spec.help
        for one in spec.parameters:
            yield f"  method.{one.name}={_told(one.default)}", _words(one)


def _words(one: Parameter) -> str:
    return _bounded(one.help, one.choices, one.least, one.most)
