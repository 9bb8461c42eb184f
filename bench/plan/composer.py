"""One point of a sweep from its overrides: Hydra composes each choice of groups once, then values are set one by one.

Composing takes some 70 ms, and a sweep may have ten thousand points that differ in a number. Whatever is no plain
`key=value`, or goes wrong, is composed as a whole, so that Hydra's grammar and its errors are what holds. It knows
nothing about commas and cells.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, nearest
from bench.plan import method_group, prompt_files, served
from bench.plan.config import CONFIGS, check
from bench.plan.settings import KEYS, Config, MethodConfig, ModelConfig
from bench.plan.treatment import check_treatment
from pti_loop.parameters import ParameterError, declared, resolve

if TYPE_CHECKING:
    from omegaconf import DictConfig

_PLAIN = re.compile(r"([a-z_0-9]+(?:\.[a-z_0-9]+)*)=(.*)", re.DOTALL)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,15}")
_OF_METHOD = "method."
Parts = tuple[Any, ...]


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


class Composer:
    """Context manager that makes configurations. `claims` is what every one of them has there; None: its own."""

    def __init__(self, claims: str | None = None) -> None:
        self._claims = claims
        self._compose, initialize = _hydra()
        self._context = initialize(config_dir=str(CONFIGS), version_base="1.3")
        self._bases: dict[tuple[str, ...], _Base] = {}
        self._items: dict[str, list[Any]] = {}

    def __enter__(self) -> Composer:
        self._context.__enter__()
        return self

    def __exit__(self, *about: Any) -> None:
        self._context.__exit__(*about)

    def lines(self, overrides: list[str]) -> list[str]:
        """The lines of overrides that a point's experiment consists of."""
        groups, values = _split(overrides)
        head = self.composed(overrides) if "points" in values else self._base(groups).head
        return [str(line) for line in head.points]

    def point(self, overrides: list[str]) -> Config:
        """The configuration of a point, checked. Raises `UserError` with the nearest name for what there is not."""
        groups, values = _split(overrides)
        once = len(groups) + len(values) == len(overrides)  # no setting is given twice
        config = self._base(groups).with_values(values) if once else None
        return self._checked(config) if config else self.whole(overrides)

    def whole(self, overrides: list[str]) -> Config:
        """The same, all of it by Hydra."""
        return self._checked(_object(self.composed(overrides)))

    def _base(self, groups: tuple[str, ...]) -> _Base:
        if groups not in self._bases:
            self._bases[groups] = _Base(self.composed(list(groups)))
        return self._bases[groups]

    def composed(self, overrides: list[str]) -> DictConfig:
        """What Hydra makes of overrides."""
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException

        try:
            return self._compose(config_name="config", overrides=overrides)
        except (HydraException, OmegaConfBaseException, ValueError, TypeError, AttributeError) as error:
            raise UserError(_explain(error, overrides)) from error

    def _checked(self, config: Config) -> Config:
        config.points = []
        if self._claims is not None:
            config.claims = self._claims
        try:
            config.method = _method(config.method)
            prompt_files.fill(config.prompts)
            check(config)
            check_treatment(config)
            if not served.needs_file(config):
                config.model = ModelConfig(config.model.served, engine=config.model.engine, served=config.model.served)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise _refused(error) from error
        items = config.prompts.items
        config.prompts.items = self._items.setdefault(_told_apart(config), items)
        return config


def _told_apart(config: Config) -> str:
    """One key for all that have the same prompts, so that two points can be told apart without reading them."""
    prompts = config.prompts
    if prompts.path and prompts.sha256:
        return f"{prompts.path} {prompts.sha256}"
    return json.dumps(prompts.items, sort_keys=True, default=str)


class _Base:
    """A choice of groups, composed once, and what its settings become."""

    def __init__(self, head: DictConfig) -> None:
        from omegaconf import OmegaConf

        # A setting that is made of others changes with them, and only Hydra knows how.
        self._by_itself = "${" not in OmegaConf.to_yaml(head)
        self.head = head
        self._config = _object(head)
        self._scratch = copy.deepcopy(head)
        self._known: dict[str, Any] = {}

    def with_values(self, values: dict[str, str]) -> Config | None:
        """The configuration with these settings, by key as they were written; None where it takes Hydra."""
        if not self._by_itself:
            return None
        config = _copied(self._config)
        for key, item in values.items():
            if item not in self._known and not self._read(key, item):
                return None
            group, _, name = key.rpartition(".")
            value = copy.copy(self._known[item])
            if group == "method":
                config.method[name] = value
            else:
                setattr(_owner(config, group), name, value)
        return config

    def _read(self, key: str, item: str) -> bool:
        """Have a value converted to its setting's type, as Hydra does; whether that went well."""
        from hydra.core.override_parser.overrides_parser import OverridesParser
        from omegaconf import OmegaConf

        text = item.partition("=")[2]
        try:
            value = int(text) if _WHOLE.fullmatch(text) else OverridesParser.create().parse_override(item).value()
            OmegaConf.update(self._scratch, key, value, merge=True)
            found = OmegaConf.select(self._scratch, key)
            self._known[item] = OmegaConf.to_container(found) if OmegaConf.is_config(found) else found
        except Exception:  # composing the whole says what is wrong
            return False
        return True


def _split(overrides: list[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """What has to be composed, and overrides of single settings by key."""
    values: dict[str, str] = {}
    groups: list[str] = []
    for item in overrides:
        if key := _single(item):
            values[key] = item
        else:
            groups.append(item)
    return tuple(groups), values


_SINGLE = frozenset(key for key in KEYS if not any(other.startswith(f"{key}.") for other in KEYS)) - {"method"}


def _single(item: str) -> str:
    """The key of an override that sets one setting and nothing else; empty for any other."""
    found = _PLAIN.fullmatch(item)
    if found is None or "${" in found[2]:
        return ""
    key = found[1]
    own = key.startswith(_OF_METHOD) and key != "method.name"
    return key if own or (key in _SINGLE and key not in ("method.name", "experiment")) else ""


def _owner(config: Config, group: str) -> Any:
    owner: Any = config
    for part in filter(None, group.split(".")):
        owner = getattr(owner, part)
    return owner


def _copied(config: Config) -> Config:
    """A configuration that can be changed without the other; prompts are shared."""
    made = copy.copy(config)
    for name in ("model", "engine", "prompts", "measure", "peers", "treatment", "method", "launcher"):
        setattr(made, name, copy.copy(getattr(config, name)))
    made.treatment.engine = copy.copy(config.treatment.engine)
    return made


def _object(head: DictConfig) -> Config:
    """The configuration as an object, its method as a mapping. Raises `UserError` where a value is of another kind."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        config = OmegaConf.to_object(head)
        assert isinstance(config, Config)
        config.method = OmegaConf.to_container(head.method)
    except (OmegaConfBaseException, TypeError, KeyError, ValueError, AttributeError) as error:
        raise _refused(error) from error
    return config


def _refused(error: BaseException) -> UserError:
    return UserError(f"a setting cannot be what it is given as: {first_line(error)}; `python -m bench sweep --help` "
                     "lists the settings and their usual values")  # fmt: skip


def _method(values: Any) -> MethodConfig:
    """The method with all its parameters. Raises `UserError` for one that it does not have, or a bad value."""
    given = {key: value for key, value in dict(values).items() if key != "name"}
    try:
        return MethodConfig(str(values["name"]), dict(resolve(str(values["name"]), given)))
    except ParameterError as error:
        raise UserError(f"{error}; {nearest(error.given, error.valid)}" if error.valid else str(error)) from error


def fingerprint(config: Config) -> Parts:
    """What tells two configurations of one `Composer` apart."""
    return tuple(_part(value) for value in vars(config).values())


def _part(value: Any) -> Any:
    if isinstance(value, list):
        return id(value) if value and isinstance(value[0], dict) else tuple(map(_part, value))
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    return tuple(map(_part, vars(value).values())) if hasattr(value, "__dict__") else value


def first_line(error: BaseException) -> str:
    """What an error says, without the lines behind."""
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
        more = "; prompts of yours are given by their path, as in prompts=./FILE" if group == "prompts" else ""
        return f"{group}={choice}: there is no such {group} in configs/{group}; {nearest(choice, valid)}{more}"
    unknown = _unknown(overrides)
    if unknown:
        return unknown
    added = re.search(r"append your config with \+?'?([\w.]+)|key '([\w.]+)' already", text)
    if added or "already at" in text:
        return f"{first_line(error)}; the key exists, so write it without the '+'"
    place = re.search(r"full_key: ([\w.]+)", text)
    names = [item for item in overrides if place and item.split("=", 1)[0] == place[1]]
    bad = next(iter(names), next((item for item in overrides if item.split("=", 1)[0] in text), ""))
    if "is not a ListConfig" in text and bad:
        return f"{bad}: a list is wanted; write {bad.replace('=', '=[', 1)}]"
    return f"{bad + ': ' if bad else ''}{first_line(error.__cause__ or error)}"
