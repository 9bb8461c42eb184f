"""How much a cell decodes, told from its configuration: against what the stored runs of the reference really were."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import pytest

from bench.plan.config import CONFIGS
from bench.plan.work import CPU, GPU, Runs, beside_s, work
from bench.records.cells import StoredCell, read_cell
from tests.plan.test_cells import plan

REFERENCE = CONFIGS.parent / "results" / "reference"
TIMED = ("baseline", "treatment", "again")


def stored() -> Iterator[StoredCell]:
    for path in sorted(REFERENCE.glob("*/*/runs.csv.gz")):
        cell = read_cell(path.parent)
        assert isinstance(cell, StoredCell)
        if "until" not in cell.config["measure"]:
            yield cell


@pytest.fixture(scope="module")
def cells() -> list[StoredCell]:
    return list(stored())


def test_the_runs_of_the_blocks_are_counted_as_they_were_measured(cells: list[StoredCell]) -> None:
    for cell in cells:
        arms = [str(arm) for arm in cell.runs["arm"]]
        assert Runs(cell.config, CPU).timed == sum(arm in TIMED for arm in arms), cell.cell


def test_the_tokens_of_prompts_are_guessed_from_their_letters(cells: list[StoredCell]) -> None:
    off = []
    for cell in cells:
        counted = Runs(cell.config, CPU)
        plain = [int(tokens) for tokens, arm in zip(cell.runs["n_prompt"], cell.runs["arm"], strict=True)
                 if arm == "baseline"]  # fmt: skip
        off.append(counted.answers * (counted.prompt + counted.depth) / statistics.mean(plain))
    # A small vocabulary has shorter words: the little model's tokens are two of them.
    assert 0.85 < statistics.median(off) < 1.15 and min(off) > 0.3 and max(off) < 1.7


def test_a_prompt_costs_a_decode_and_its_tokens_at_the_price_of_a_batch(cells: list[StoredCell]) -> None:
    """The price is that of the reference: time of the prefill over time of a plain decode, in the same runs."""
    for device, machine in ((CPU, "amd-epyc-2c"), (GPU, "h200")):
        found = [price for cell in cells if cell.machine == machine and (price := prompt_price(cell)) > 0]
        assert 0.5 < device.prompt / statistics.median(found) < 2, (machine, found)


def prompt_price(cell: StoredCell) -> float:
    """Plain decodes that a prompt's token takes in the baseline beside one a prompt; 0 where none is long."""
    runs, answers = cell.runs, Runs(cell.config, CPU).answers
    prices = []
    for at, arm in enumerate(runs["arm"]):
        tokens, decodes = int(runs["n_prompt_evaluated"][at]), int(runs["window_decodes"][at])
        if arm == "baseline" and tokens >= 40 * answers and decodes > 0:
            prefill = float(runs["prefill_ns"][at]) / (float(runs["decode_window_ns"][at]) / decodes)
            prices.append((prefill - answers) / tokens)
    return statistics.median(prices) if prices else 0.0


def cost(*overrides: str) -> tuple[str, dict[str, Any]]:
    (cell,) = plan("method=lookup", *overrides)
    return cell.kind, cell.config


def test_what_is_measured_more_often_or_behind_more_text_is_more_work() -> None:
    usual = work(*cost())
    assert work(*cost("measure.again_blocks=1")) < usual < work(*cost("measure.again_blocks=99"))
    assert work(*cost("measure.again_blocks=99")) == work(*cost("measure.again_blocks=6")), "there are six blocks"
    assert work(*cost("measure.sharp=false")) < usual < work(*cost("measure.texts=5"))
    behind, at_once = work(*cost("depth=4096", "prompts=default")), work(*cost("prompts=default"))
    assert 2 < (behind - at_once) / (4096 * CPU.prompt) < 8, "each kind of context evaluates it once, of both weights"
    assert work(*cost("depth=4096"), held=2e-4) > 1.2 * work(*cost("depth=4096")), "and every decode attends to it"
    kind, config = cost("depth=4096")
    mtp = config | {"method": config["method"] | {"name": "mtp"}}
    assert work(kind, mtp) > 2 * work(kind, config), "a head has to see every row, so that each run evaluates it"
    kind, config = cost("depth=4096")
    assert work(kind, config, on_cpu=False) < work(kind, config), "a GPU takes prompts for less"


def test_what_is_no_decode_is_counted_apart() -> None:
    kind, config = cost()
    assert beside_s(kind, config, 5e9) > beside_s(kind, config, 1e9) > 0, "weights are loaded"
    trial = {"treatment": {"engine": {"build": "b"}}} | config
    assert beside_s("trial", trial, 1e9) == 2 * beside_s(kind, config, 1e9), "by each of two processes"
    warm = cost("temperature=0.7")
    assert beside_s(*warm, 1e9) > beside_s(kind, config, 1e9), "draws are the CPU's"
    runs = Runs(config, CPU).timed
    assert beside_s("served", config, 1e9) > runs * 0.2, "every run has a server of its own"
