"""What is measured beside the runs, by hand: drafters' contexts, memory, energy, noise, ends, and servers' counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.judge.invariants.beside import (
    drafters_decode,
    ends_as_configured,
    energy_fits,
    memory_is_one_process,
    noise_is_the_shapes,
)
from bench.judge.invariants.served import counts_fit
from tests.judge.invariants.test_accounts_by_hand import counted
from tests.judge.judge_cells import case_of, guess_cell

MIB = 1 << 20


def drafting(drafter: dict[str, Any], schema: int = 3, **columns: int) -> str | None:
    cell = counted()
    cell.config["schema"] = schema
    cell.facts["drafter"] = drafter
    mine = cell.runs["arm"].isin(("treatment", "sabotage", "oracle"))
    for name, value in columns.items():
        cell.runs.loc[mine, name] = value
    return drafters_decode(case_of(cell))


def test_a_drafter_with_a_context_decodes_in_it_once_a_round_at_least() -> None:
    full = {"beside_window_decodes": 40, "beside_window_tokens": 40, "beside_outside_tokens": 10}
    assert drafting({"context": {}}, **full) is None
    assert drafting({"context": {}}, **full | {"beside_window_decodes": 19})
    assert drafting({"context": {}}, **full | {"beside_window_tokens": 39})
    assert drafting({"context": {}}, **full | {"beside_outside_tokens": 0})
    assert drafting({"context": {}}, **full | {"beside_outside_tokens": 1}) is None
    assert drafting({"context": {}}, schema=2) is None and drafting({"context": {}}) is not None
    assert drafting({"context": {}, "head": {}}) is None


@pytest.mark.parametrize("name", ["beside_window_decodes", "beside_window_tokens", "beside_outside_tokens"])
def test_a_drafter_without_a_context_decodes_nowhere(name: str) -> None:
    assert drafting({}) is None and drafting({"types": ["ngram-mod"]}) is None
    assert "no drafter has one" in str(drafting({}, **{name: 1}))


def held(grown: int, cached: int = 10 * MIB, rss: int | None = None, **more: Any) -> str | None:
    before, rss = 100 * MIB, grown if rss is None else rss
    looks = {"process_bytes_before": before, "process_bytes": before + grown, "rss_bytes_before": before,
             "rss_bytes": before + rss, "kv_bytes": cached // 2, "state_bytes": cached - cached // 2}  # fmt: skip
    facts: dict[str, Any] = {"memory": {"baseline": looks | more}, "model": {"layers_offloaded": 0}}
    return memory_is_one_process(SimpleNamespace(cell=SimpleNamespace(facts=facts)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("grown", "cached", "rss", "words"), [
    (20, 10, 20, ""), (5, 10, 5, ""), (4, 10, 4, "has caches of"), (-3, 0, -3, ""), (-5, 0, -5, "smaller, by 5242880"),
    (100, 10, 113, ""), (100, 10, 115, "of what it holds"), (100, 10, 85, "of what it holds"), (0, 0, 4, ""),
    (0, 0, 5, "of what it holds")])  # fmt: skip
def test_a_context_takes_its_caches(grown: int, cached: int, rss: int, words: str) -> None:
    told = held(grown * MIB, cached * MIB, rss=rss * MIB) or ""
    assert words in told and bool(words) == bool(told)


def test_a_context_on_a_card_takes_them_there() -> None:
    card = {"card_bytes_before": 0, "card_bytes": 20 * MIB}
    assert held(0, 20 * MIB) and held(0, 20 * MIB, **card) is None and held(0, 90 * MIB, **card)


@pytest.mark.parametrize(("apart", "fault"), [(0, False), (4, False), (5, True), (-4, False), (-5, True)])
def test_contexts_are_made_one_after_the_other(apart: int, fault: bool) -> None:
    first = {"process_bytes_before": 100 * MIB, "process_bytes": 110 * MIB}
    then = {"process_bytes_before": (110 + apart) * MIB, "process_bytes": 140 * MIB}
    facts: dict[str, Any] = {"memory": {"treatment": then, "baseline": first}}
    case: Any = SimpleNamespace(cell=SimpleNamespace(facts=facts))
    assert (memory_is_one_process(case) is not None) == fault
    facts["sides"] = "together"
    assert memory_is_one_process(case) is None


def joules(base: float, mine: float, window: float = 2.0, power: float = 100.0, limit: float = 300.0) -> str | None:
    runs = {"energy_j": np.array([base, mine]), "power_w": np.array([power, power]), "power_cap_w": np.full(2, limit)}
    table: Any = SimpleNamespace(run=np.arange(2), arm=np.array(["baseline", "treatment"]), window=np.full(2, window),
                                 of=lambda arm: np.array([arm == "baseline", arm == "treatment"]))  # fmt: skip
    return energy_fits(SimpleNamespace(runs=table, cell=SimpleNamespace(runs=runs)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "words"), [
    ((200.0, 200.0), ""), ((200.0, 100.0), ""), ((200.0, 90.0), "1.00 times what its driver says, and"),
    ((200.0, 90.0), "the treatment 0.45 times"), ((90.0, 200.0), "baseline takes 0.45 times"),
    ((200.0, 90.0, 0.49), ""), ((200.0, 90.0, 0.5), "the treatment 1.80 times"), ((200.0, -1.0), "-1 J"),
    ((200.0, 200.0, 2.0, 375.0), ""), ((200.0, 200.0, 2.0, 376.0), "under a limit of 300 W"),
    ((200.0, 200.0, 2.0, -1.0), "at -1 W"), ((float("nan"), 200.0), "")])  # fmt: skip
def test_energy_and_power_say_the_same_of_both_arms(given: tuple[float, ...], words: str) -> None:
    told = joules(*given) or ""
    assert words in told and bool(words) == bool(told)


@pytest.mark.parametrize(("noise", "fault"), [
    ({}, None), ({"positions": 81}, "the noise was to be measured at 82 positions, and it was at 81"),
    ({"positions": 83}, "the noise was to be measured at 82 positions, and it was at 83"),
    ({"widths": [1, 3]}, None), ({"widths": [1, 2]}, "between decodes of 1 and 2 rows, and rounds decode 3"),
    ({"widths": [2, 3]}, "between decodes of 2 and 3 rows"), ({"widths": [1, 2], "of": "reference"}, None),
    ({"widths": []}, "rounds decode 3")])  # fmt: skip
def test_the_noise_is_between_the_shapes_of_the_arms(noise: dict[str, Any], fault: str | None) -> None:
    cell = guess_cell()
    cell.config.update(schema=3, measure={"noise_prompts": 2})
    cell.facts["noise"] = {"positions": 82, "widths": [1, 9], "of": "treatment"} | noise
    told = noise_is_the_shapes(case_of(cell))
    assert (fault in str(told)) if fault else told is None
    cell.config["schema"] = 2
    assert noise_is_the_shapes(case_of(cell)) is None


@pytest.mark.parametrize(("ends", "asked", "fault"), [([], True, False), ([2], False, False), ([2], True, True),
                                                      ([], False, True)])  # fmt: skip
def test_answers_end_by_themselves_where_they_may(ends: list[int], asked: bool, fault: bool) -> None:
    cell = guess_cell()
    cell.config.update(schema=3, ignore_eos=asked)
    cell.facts["ends"] = ends
    assert (ends_as_configured(case_of(cell)) is not None) == fault
    del cell.config["schema"]
    assert ends_as_configured(case_of(cell)) is None


def server(sides: str = "fresh", evaluated: int = 10, **columns: Any) -> str | None:
    """Two runs of each side, one answer of ten prompt tokens and eight tokens each."""
    rows = {"run": [0, 1, 2, 3], "told": [8] * 4, "accepted": [-1] * 4, "drafted": [-1] * 4, "events": [8] * 4,
            "n_prompt": [10] * 4, "n_cached": [0] * 4, "starts": [1, 1, 2, 2]} | columns  # fmt: skip
    arms = np.array(["baseline", "treatment", "again", "treatment"])
    table: Any = SimpleNamespace(run=np.arange(4), n_prompt=np.full(4, 10), n_prompt_evaluated=np.full(4, evaluated),
                                 of=lambda arm: arms == arm, any_of=lambda some: np.isin(arms, some))  # fmt: skip
    served = {name: np.array(values) for name, values in rows.items()}
    case: Any = SimpleNamespace(runs=table, cell=SimpleNamespace(served=served, facts={"sides": sides}))
    return counts_fit(case)


@pytest.mark.parametrize(("columns", "words"), [
    ({}, ""), ({"accepted": [16] * 4}, ""), ({"accepted": [17, 1, 1, 1]}, "accepts twice as many"),
    ({"events": [1] * 4}, ""), ({"events": [0, 8, 8, 8]}, "more or fewer pieces"), ({"events": [9, 8, 8, 8]}, "pieces"),
    ({"n_cached": [11, 0, 0, 0]}, "more of its prompt cached"), ({"n_cached": [1, 0, 0, 0]}, "evaluates another part"),
    ({"n_prompt": [9] * 4}, "counts another prompt"), ({"n_prompt": [-1] * 4}, ""),
    ({"starts": [1, 1, 1, 2]}, "one start"), ({"starts": [1, 2, 2, 2]}, "one start"),
    ({"starts": [-1] * 4}, "")])  # fmt: skip
def test_servers_count_what_their_runs_have(columns: dict[str, Any], words: str) -> None:
    told = server(**columns) or ""
    assert words in told and bool(words) == bool(told)


def test_servers_that_are_kept_start_once_and_may_have_cached() -> None:
    assert server("kept", starts=[1] * 4) is None
    assert server("kept", evaluated=9, n_cached=[1] * 4) is None and server(evaluated=-1, n_cached=[3] * 4) is None
