"""Blocks, controls, seeds and lengths against a plan that is small enough to be read: each departure, and its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench.judge.invariants import plan
from tests.judge.judge_cells import Arm, Builder, Cell, case_of, guess_cell

SEED = 1_000_003
ITEMS = [{"id": "p0", "class": "code", "text": "a"}, {"id": "p2", "class": "code", "text": "b"},
         {"id": "p1", "class": "prose", "text": "c"}, {"id": "p3", "class": "prose", "text": "d"}]  # fmt: skip
CARRIED = Arm(round_ms=62.5, per_round=2, drafted=2, accepted=1, verified=2)


def planned(blocks: int = 4, carry: int = 0, kept: int = 0, **measure: Any) -> Cell:
    """Blocks of one prompt each, A/A and planted guesses in two of them, as configured."""

    def more(builder: Builder) -> None:
        builder.arms |= {"carry": CARRIED, "kept": CARRIED}
        for number, (arm, count) in enumerate((("carry", carry), ("kept", kept))):
            if count:
                builder.block(blocks + number, [arm] * count, "p3")

    cell = guess_cell(blocks=blocks, change=more)
    cell.config.update(schema=3, prompts={"items": [dict(item) for item in ITEMS]}, measure={
        "per_class": 2, "again_blocks": 2, "control_blocks": 2, "control_tokens": 41, **measure})  # fmt: skip
    cell.facts["engine"]["treatment"]["n_seq_max"] = 1
    runs = cell.runs
    half = (runs.groupby("block")["order"].transform("max") + 1) / 2
    runs["seed"] = SEED + 2 * runs["block"] + (runs["order"] >= half)
    apart = runs["arm"].isin(["carry", "kept"])
    runs.loc[apart, "seed"] = SEED + 2 * 3
    return cell


def blocks(change: Callable[[Cell], Any] = lambda cell: None, *, size: int = 4, **measure: Any) -> str | None:
    cell = planned(size, **measure)
    change(cell)
    return plan.blocks_as_configured(case_of(cell))


def of(cell: Cell, **wanted: object) -> Any:
    """Rows of runs."""
    mask = cell.runs["run"] >= 0
    for name, value in wanted.items():
        mask &= cell.runs[name] == value
    return mask


def test_a_cell_as_planned_has_nothing_to_be_told() -> None:
    assert blocks() is None
    assert plan.seeds_as_configured(case_of(planned())) is None
    assert plan.seeds_as_configured(case_of(planned(carry=3))) is None


@pytest.mark.parametrize(
    ("measure", "told"),
    [
        ({"per_class": 1}, "2 blocks were configured, and 4 are stored"),
        ({"per_class": 3}, None),
        ({"classes": ["code"]}, "2 blocks were configured, and 4 are stored"),
        ({"classes": ["prose", "code"]}, None),
        ({"blocks_per_prompt": 2}, "8 blocks were configured, and 4 are stored"),
        ({"blocks_per_prompt": 1}, None),
        ({"per_class": 1, "until": 0.02}, "no block from 2 on is about 'p0', which was configured"),
        ({"per_class": 3, "until": 0.02}, None),
        ({"blocks_per_prompt": 2, "until": 0.02}, "8 blocks a pass were configured, and 4 are stored"),
        ({"again_blocks": 3}, "3 blocks with the control again were configured, and 2 have it"),
        ({"again_blocks": 1}, "1 blocks with the control again were configured, and 2 have it"),
        ({"again_blocks": 0}, "0 blocks with the control again were configured, and 2 have it"),
        ({"control_blocks": 1}, "1 blocks with the control sabotage were configured, and 2 have it"),
        ({"control_blocks": 9}, "4 blocks with the control sabotage were configured, and 2 have it"),
    ],
)  # fmt: skip
def test_blocks_and_controls_are_counted(measure: dict[str, Any], told: str | None) -> None:
    assert blocks(**measure) == told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda cell: cell.config["prompts"]["items"][3].update(id="p9"),
         "no block from 0 on is about 'p9', which was configured"),
        (lambda cell: cell.runs.loc.__setitem__((of(cell, block=1, order=2), "prompt"), "p0"),
         "block 1 decodes 'p1' and 'p0', and a block is about one prompt"),
        (lambda cell: cell.runs.loc.__setitem__((of(cell, prompt="p0"), "prompt_class"), "prose"),
         "'p0' is of the class code, and runs of it say prose"),
        (lambda cell: cell.runs.loc.__setitem__((of(cell, block=3), "block"), 4),
         "4 blocks were configured, and 4 are stored"),
        (lambda cell: cell.runs.loc.__setitem__((of(cell, block=2, order=0), "arm"), "again"),
         "block 2 has 1 runs of baseline, and every arm runs twice in a block"),
        (lambda cell: cell.runs.loc.__setitem__((of(cell, block=2, order=1), "arm"), "solo"),
         "block 2 has 1 runs of treatment, and every arm runs twice in a block"),
        (lambda cell: cell.runs.loc.__setitem__((of(cell, block=0, arm="oracle"), "arm"), "again"),
         "block 0 has 4 runs of again, and every arm runs twice in a block"),
        (lambda cell: cell.facts["engine"]["treatment"].update(n_seq_max=2),
         "2 blocks with the control solo were configured, and 0 have it"),
        (lambda cell: cell.config.pop("measure"), None),
        (lambda cell: cell.config["measure"].pop("per_class"), None),
        (lambda cell: cell.config["prompts"].update(items=[]), None),
        (lambda cell: cell.config.pop("prompts"), None),
        (lambda cell: cell.config["measure"].update(again_blocks=None),
         "0 blocks with the control again were configured, and 2 have it"),
    ],
)  # fmt: skip
def test_what_a_block_has(change: Callable[[Cell], Any], told: str | None) -> None:
    assert blocks(change) == told


def test_the_carried_prompt_is_in_no_block_of_the_plan() -> None:
    assert plan.blocks_as_configured(case_of(planned(carry=3, kept=4))) is None


@pytest.mark.parametrize(
    ("streams", "groups"),
    [(2, ["p0+p2", "p2+p0", "p1+p3", "p3+p1"]), (3, ["p0+p2+p1", "p2+p1+p3", "p1+p3+p0", "p3+p0+p2"])],
)
def test_answers_that_are_decoded_together_have_the_next_prompts(streams: int, groups: list[str]) -> None:
    """Of their class as far as it goes, else of the whole set."""
    cell = guess_cell(method={"name": "packed"}, streams=streams)
    cell.config.update(prompts={"items": ITEMS}, measure={"per_class": 2})
    assert plan._tasks(case_of(cell)) == groups
    cell.config["measure"] |= {"classes": ["prose"], "blocks_per_prompt": 2, "per_class": 1}
    assert plan._tasks(case_of(cell)) == [groups[2]] * 2


def test_a_group_of_several_classes_is_mixed() -> None:
    cell = planned()
    cell.runs["prompt"] = cell.runs["prompt"].replace({"p0": "p0+p2", "p1": "p0+p1", "p3": "unknown"})
    assert plan._classes(case_of(cell)) == {"p0+p2": "code", "p0+p1": "mixed", "p2": "code", "unknown": ""}
    cell.config["prompts"] = {}
    assert plan._classes(case_of(cell)) == {}


def seeds(change: Callable[[Cell], Any], **keys: Any) -> str | None:
    cell = planned(**keys)
    change(cell)
    return plan.seeds_as_configured(case_of(cell))


def test_a_seed_is_its_blocks_and_turns() -> None:
    cell = planned()
    run = int(cell.runs["run"][of(cell, block=2, order=1)].iloc[0])

    def other(by: int) -> Callable[[Cell], None]:
        return lambda cell: cell.runs.__setitem__("seed", cell.runs["seed"] + by * (cell.runs["run"] == run))

    assert seeds(other(1)) == f"run {run} has the seed {SEED + 5}, and its block and turn give {SEED + 4}"
    assert seeds(other(0)) is None
    assert seeds(lambda cell: (other(1)(cell), cell.config.pop("schema"))) is None
    assert f"give {2 * SEED}" in str(seeds(lambda cell: cell.config.update(seed=2)))


@pytest.mark.parametrize(
    ("asked", "planted", "told"),
    [(41, 41, None), (0, 41, None), (10, 10, None), (99, 41, None), (10, 41, "was asked for 41 tokens"),
     (41, 10, "was asked for 10 tokens")],
)  # fmt: skip
def test_controls_with_planted_guesses_may_be_shorter(asked: int, planted: int, told: str | None) -> None:
    def shorter(cell: Cell) -> None:
        cell.runs.loc[cell.runs["arm"].isin(["sabotage", "oracle"]), "n_predict"] = planted

    found = seeds(shorter, control_tokens=asked)
    assert found is None if told is None else told in str(found) and "(sabotage)" in str(found)


def test_no_other_arm_may_be_shorter() -> None:
    told = seeds(lambda cell: cell.runs.loc.__setitem__((of(cell, arm="again"), "n_predict"), 10), control_tokens=10)
    assert "(again) was asked for 10 tokens" in str(told) or "(sabotage)" in str(told)
    assert "(treatment) was asked for 9" in str(seeds(
        lambda cell: cell.runs.loc.__setitem__((of(cell, arm="treatment"), "n_predict"), 9)))  # fmt: skip


@pytest.mark.parametrize(
    ("count", "change", "told"),
    [
        (2, lambda cell: None, "the carried prompt has 2 runs; it is decoded cold, again and in the end"),
        (4, lambda cell: None, "the carried prompt has 4 runs; it is decoded cold, again and in the end"),
        (3, lambda cell: cell.runs.loc.__setitem__((of(cell, arm="carry"), "order"), [0, 2, 1]), "has 3 runs"),
        (3, lambda cell: cell.runs.loc.__setitem__((of(cell, arm="carry"), "seed"), 7),
         "the carried prompt 'p3' has a seed that no block gives it"),
        (3, lambda cell: cell.runs.loc.__setitem__((of(cell, arm="carry"), "seed"), SEED + 7), None),
    ],
)  # fmt: skip
def test_the_carried_prompt_comes_thrice_with_a_seed_of_its_block(
    count: int, change: Callable[[Cell], Any], told: str | None
) -> None:
    found = seeds(change, carry=count)
    assert found is None if told is None else told in str(found)


def keeps(cell: Cell) -> None:
    cell.facts["drafter"] = {"remembers": True}


@pytest.mark.parametrize(
    ("count", "change", "told"),
    [
        (0, lambda cell: keeps(cell), "the drafter could be kept from answer to answer, and no run tells"),
        (4, lambda cell: None, "runs with a drafter that is kept are stored, and the drafter keeps nothing"),
        (4, keeps, None),
        (3, keeps, "a drafter that is kept has 3 runs; its prompt comes twice, and twice after a foreign one"),
        (4, lambda cell: (keeps(cell), cell.runs.loc.__setitem__((of(cell, arm="kept", order=2), "prompt"), "p1")),
         "another prompt or seed than the carried prompt's runs"),
        (4, lambda cell: (keeps(cell), cell.runs.loc.__setitem__((of(cell, arm="kept", order=1), "seed"), 9)),
         "another prompt or seed than the carried prompt's runs"),
    ],
)  # fmt: skip
def test_a_drafter_that_is_kept_has_four_runs_of_the_carried_prompt(
    count: int, change: Callable[[Cell], Any], told: str | None
) -> None:
    found = seeds(change, carry=3, kept=count)
    assert found is None if told is None else told in str(found)


def ended(why: str | None, *passes: tuple[float, float | None, float], size: int = 4, **measure: Any) -> str | None:
    """What is said of a cell whose rule saw (blocks, half width, seconds) pass by pass."""
    cell = planned(size, **measure)
    cell.facts["stopping"] = {"why": why, "passes": [
        {"blocks": blocks, "half_width": width, "seconds": spent} for blocks, width, spent in passes]}  # fmt: skip
    return plan.stopped_by_the_rule(case_of(cell))


RULE = {"until": 0.02, "budget": 1}


def test_without_a_rule_blocks_are_those_of_the_plan() -> None:
    assert ended(None) is None and ended("fixed") is None
    assert ended("narrow") == "blocks ended as 'narrow', and no rule was configured that could end them"


@pytest.mark.parametrize(
    ("why", "passes", "told"),
    [
        ("narrow", [(4, 0.02, 20)], None),
        ("narrow", [(4, 0.021, 20)], "the half widths that its rule saw say another"),
        ("narrow", [(4, None, 20)], "say another"),
        ("decided", [(4, 0.05, 20)], None),
        ("decided", [(4, 0.01, 20)], "say another"),
        ("fixed", [(4, 0.02, 20)], "the record does not tell what the rule saw"),
        ("narrow", [], "the record does not tell what the rule saw"),
        ("narrow", [(3, 0.02, 20)], "the rule saw 3 blocks in 1 passes, and 4 are stored"),
        ("narrow", [(2, 0.05, 10), (4, 0.01, 20)], None),
        ("narrow", [(2, 0.05, 10), (5, 0.01, 20)], "the rule saw 5 blocks in 2 passes, and 4 are stored"),
        ("narrow", [(2, 0.02, 10), (4, 0.01, 20)], "say another"),
        ("narrow", [(2, 0.05, 20), (4, 0.01, 10)], "had room for another pass"),
        ("budget", [(4, 0.05, 31)], None),
        ("budget", [(4, 0.05, 30)], "had room for another pass"),
        ("budget", [(2, 0.05, 10), (4, 0.05, 36)], None),
        ("budget", [(2, 0.05, 25), (4, 0.05, 34)], "ended as 'budget' after 34 s, and the budget had room"),
    ],
)  # fmt: skip
def test_blocks_end_where_the_rule_says(why: str, passes: list, told: str | None) -> None:
    found = ended(why, *passes, **RULE)
    assert found is None if told is None else told in str(found)
