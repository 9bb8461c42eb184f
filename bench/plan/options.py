"""The options of a sweep beside its overrides, and a sentence for each that Hydra has and a sweep has not.

Knows the words alone; what is shown for them is `bench.plan.shown` and `bench.run.preview`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.errors import UserError, nearest

PLAN, CONFIG, INFO = "plan", "cfg", "info"
_SHORT = {"-c": "--cfg", "-i": "--info", "-p": "--package", "-m": "--multirun", "-r": "--run", "-cp": "--config-path",
          "-cn": "--config-name", "-cd": "--config-dir", "-sc": "--shell-completion"}  # fmt: skip
_CFG = ("job", "hydra", "all")
_INFOS = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
_OWN_FILES = "the configuration of a sweep is that of configs/; put a file of yours into one of its groups, as in "
OTHERS = {
    "--multirun": "commas sweep by themselves here, and launcher=submitit or launcher=ray has other machines measure",
    "--run": "a sweep runs without it",
    "--hydra-help": "Hydra's own settings change nothing of a sweep; `python -m bench sweep --help` has those that do",
    "--shell-completion": "there is none; `python -m bench sweep --help WORD` finds a key",
    "--config-path": f"{_OWN_FILES}configs/model",
    "--config-name": f"{_OWN_FILES}configs/experiment, and write experiment=NAME",
    "--config-dir": f"{_OWN_FILES}configs/prompts",
    "--experimental-rerun": "`python -m bench rerun CELL` measures a stored cell again",
    "--version": "a plan names the builds that it would measure: `python -m bench sweep --plan`",
}
"""What is said of an option of Hydra's that a sweep has not."""
_LAUNCHERS = ("submitit", "ray")
OWN = ("--plan", "--cfg", "--info", "--package", "--resolve", "--help")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks for."""

    overrides: tuple[str, ...]
    show: str = ""
    """`plan`, `cfg` or `info`: what to show in place of a run."""
    package: str = ""
    """The part of the configuration that is shown; all of it where it is empty."""


def asked(words: Sequence[str]) -> Asked:
    """Options and overrides apart. Raises `UserError` for an option that there is not, with what to do in its place."""
    overrides, show, package = [], "", ""
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            overrides.append(_override(word))
            continue
        name, equals, value = word.partition("=")
        name = _SHORT.get(name, name)
        if name == "--cfg":
            _told(name, value or (left.pop(0) if left and not equals else ""), _CFG)
            show = CONFIG
        elif name == "--info":
            value = value or (left.pop(0) if left and left[0] in _INFOS else "all")
            _told(name, value, _INFOS)
            show = INFO
        elif name == "--package":
            package = value or (left.pop(0) if left else "")
        elif name == "--plan":
            show = PLAN
        elif name != "--resolve":  # everything is resolved
            raise UserError(_refusal(word, name, words))
    if package and show != CONFIG:
        raise UserError(f"--package {package} takes a part of what --cfg job shows; write both")
    return Asked(tuple(overrides), show, package)


def _told(option: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise UserError(f"{option} {given}: there is no such thing to show; {nearest(given, known)}")
    if given == "hydra":
        raise UserError(f"{option} hydra: Hydra's own settings change nothing of a sweep; write {option} job")


def _override(word: str) -> str:
    """An override. Raises `UserError` for a setting of Hydra's own, a launcher among them."""
    key = word.lstrip("+~").partition("=")[0]
    if key.startswith(("hydra/launcher", "hydra.launcher")):
        asked_for = next((name for name in _LAUNCHERS if name in word.lower()), "local")
        raise UserError(f"{word}: a launcher of Hydra's would plan here what another machine measures; write launcher="
                        f"{asked_for} in its place, whose hosts plan for themselves (docs/launchers.md)")  # fmt: skip
    if key.startswith(("hydra.", "hydra/")) or key == "hydra":
        raise UserError(f"{word}: Hydra's own settings change nothing of a sweep; leave it out (results=FOLDER says "
                        "where records go)")  # fmt: skip
    return word


def _refusal(word: str, name: str, words: Sequence[str]) -> str:
    rest = [one for one in words if one != word]
    if name not in OTHERS:
        return f"a sweep has no option {word}; {nearest(name, (*OWN, *OTHERS))}"
    return f"{word}: {OTHERS[name]}; write `{' '.join(['python -m bench sweep', *rest])}`"
