"""`python -m bench advise`: finds the records of one model on this machine and prints what they advise.

It measures nothing and decides nothing: the rows come from the judge, the words from the report.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.errors import UserError, nearest
from bench.judge.predict.advice import Advice, advise
from bench.plan.config import CONFIGS
from bench.records.cells import REFERENCE, cell_folders
from bench.stored import judge_stored
from pti_loop.parameters import declared

KEYS = ("model", "results", "machine")
USUAL = "smollm2-135m"


def main(rest: list[str]) -> int:
    """Print the advice. Raises `UserError` where there are no records to advise from."""
    from rich.console import Console

    from bench.report.terminal.advice import print_advice

    given = settings(rest)
    found, root = advice(given.get("model", USUAL), Path(given.get("results", "results")), given.get("machine"))
    print_advice(found, root, model_word(given.get("model", USUAL)), Console())
    return 0


def settings(rest: list[str]) -> dict[str, str]:
    """The few keys of this verb, without the cost of Hydra."""
    given = {}
    for word in rest:
        key, _, value = word.partition("=")
        if key not in KEYS or not value:
            raise UserError(f"'{word}' is no setting of advise; {nearest(key, KEYS)}")
        given[key] = value
    return given


def advice(model: str, results: Path, machine: str | None = None) -> tuple[Advice, Path]:
    """Advice, and the folder that its records lie in: local ones first, then the reference.

    Raises `UserError` when neither holds a finished cell of this model on this machine.
    """
    from bench.report.page.damaged import damaged_lines

    name = machine or _this_machine()
    others: set[str] = set()
    for root in (results, results / REFERENCE):
        folders = cell_folders(root)
        others |= {folder.parent.name for folder in folders}
        mine = [folder for folder in folders if folder.parent.name == name]
        findings = judge_stored(mine)
        for told in damaged_lines(findings.cells):
            print(told, file=sys.stderr)
        found = advise(findings, model, name, declared()) if mine else None
        if found is not None:
            return found, root / name
    elsewhere = sorted(others - {name})
    hint = f"; records of other machines: machine={' or machine='.join(elsewhere)}" if elsewhere else ""
    raise UserError(
        f"there are no records of {model_word(model)} on {name} in {results}; run "
        f"`python -m bench sweep {model_word(model)} +experiment=pti`{hint}"
    )


def _this_machine() -> str:
    from bench.host.provenance import machine

    return str(machine()["name"])


def model_word(model: str) -> str:
    """The override that names a model: of the group when it has a file there, else the way to give a file."""
    known = (CONFIGS / "model" / f"{model}.yaml").exists()
    return f"model={model}" if known else f"model=gguf model.path={model}.gguf"
