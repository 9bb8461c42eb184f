"""Sums over rounds of a small cell with round figures: every term of the cost model by hand."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from bench.judge.predict.cost_model import Prices
from bench.judge.predict.rounds import Guessing, guessing, round_prices, turns
from tests.judge.judge_cells import Arm, Builder, Cell, case_of, default_config

MS = 10**6


def cell(treatment: Arm | None = None, streams: int = 1) -> Cell:
    """Two blocks, plain rounds of 50 ms of which 4 ms are host's, and rounds of 100 ms with 2 guesses, 1 right."""
    usual = Arm(round_ms=100.0, per_round=2, drafted=2, accepted=1, host_ms=8.0, gap_ms=23.0)
    arms = {"baseline": Arm(host_ms=4.0), "treatment": treatment or usual}
    builder = Builder(default_config(streams=streams), arms, n_predict=41)
    for block in range(2):
        builder.block(block, ("baseline", "treatment", "treatment", "baseline"), f"p{block}")
    return builder.build()


NOTHING = np.zeros((2, 3))


def found(of: Cell, extra: tuple[float, ...] = (0.5, 0.25, 0.0)) -> Guessing:
    table = case_of(of).runs
    told = guessing(table, turns(table), np.array([extra, (9.0, 9.0, 9.0)]), np.ones(len(table.run), dtype=bool))
    assert told is not None
    return told


def test_ages_begin_anew_with_a_run_a_width_and_a_decode_between() -> None:
    of = cell()
    table = case_of(of).runs
    plain = table.turns["owner"] == 0
    assert turns(table).age[plain].tolist() == [0, 1] + [2] * 38
    assert turns(table).step == pytest.approx([0.046] * 8)
    wide = copy.deepcopy(of)
    mine = wide.rounds.index[wide.rounds["run"] == 1]
    wide.rounds.loc[mine[5], "width"] = 4
    ages = turns(case_of(wide).runs).age[np.asarray(wide.rounds["run"] == 1)]
    assert ages[:9].tolist() == [0, 1, 2, 2, 2, 0, 0, 1, 2]
    again = copy.deepcopy(of)
    again.rounds.loc[mine[5], "redecoded"] = 1
    assert turns(case_of(again).runs).age[np.asarray(again.rounds["run"] == 1)][:8].tolist() == [0, 1, 2, 2, 2, 0, 1, 2]


def test_the_step_is_that_of_the_settled_rounds_of_its_block() -> None:
    of = cell()
    first = [of.rounds.index[of.rounds["run"] == run][0] for run in (0, 3)]
    of.rounds.loc[first, ["decode_ns", "total_ns"]] += 500 * MS
    block = of.rounds["run"].isin((4, 7))
    of.rounds.loc[block, "decode_ns"] = 23 * MS
    table = case_of(of).runs
    assert turns(table).step == pytest.approx([0.046] * 4 + [0.023] * 4)
    relative = turns(table).relative(table)
    assert relative[table.turns["owner"] == 0][:3] == pytest.approx([546 / 46, 1, 1])


def test_every_term_by_hand() -> None:
    told = found(cell())
    rounds, step = 20, 0.046
    # Of each unit two runs of 20 rounds; a round of 100 ms has 92 ms of decode and 8 ms of host.
    assert told.sums["rounds"].tolist() == [40, 40] and told.sums["drafted"].tolist() == [80, 80]
    assert told.sums["rows"].tolist() == [120, 120] and told.sums["runs"].tolist() == [2, 2]
    assert told.sums["tokens"].tolist() == [80, 80] and told.sums["looks"].tolist() == [0, 0]
    assert told.sums["host"] == pytest.approx([(2 * rounds * 0.008 + 2 * 0.023) / step] * 2)
    assert told.sums["rest"] == pytest.approx(told.sums["host"]) and told.sums["sample"].tolist() == [0, 0]
    assert told.sums["switch"] == pytest.approx([2 * 0.75] * 2), "half a step, then a quarter, at the head of each run"
    assert told.sums["baseline"] == pytest.approx([2 * 50 / 46] * 2)
    assert told.sums["firing"].tolist() == [40, 40] and told.tested.tolist() == [[40, 40]] * 2
    assert told.accepted.tolist() == [[40, 0]] * 2
    assert (told.streams, told.length, told.narrows, told.settles, told.keeps) == (1, 2, False, True, True)
    terms = told.terms()
    assert (terms.fires, terms.kept, terms.streams, terms.look, terms.guess) == (1.0, 1.0, 1, 0.0, 0.0)
    assert terms.rest == pytest.approx((0.008 + 0.023 / 20) / step) and terms.switch == pytest.approx(0.75 / 20)
    assert terms.baseline == pytest.approx(50 / 46) and terms.startup == 0.0 and terms.row == 0.0
    assert told.parts() == pytest.approx({"draft": 0, "sample": 0, "rollback": 0, "switch": 0.0375,
                                          "host": (0.008 + 0.023 / 20) / step})  # fmt: skip
    one = told.terms(np.array([[2.0, 0.0], [1.0, 1.0]]))
    assert one.rest == pytest.approx([terms.rest] * 2)


def test_drafting_and_sampling_are_terms_of_their_own() -> None:
    of = cell()
    mine = of.rounds["run"].isin((1, 2, 5, 6))
    of.rounds.loc[mine, "draft_ns"] = 6 * MS
    of.rounds.loc[mine, "sample_ns"] = 2 * MS
    quiet = [of.rounds.index[of.rounds["run"] == run][3] for run in (1, 2, 5, 6)]
    of.rounds.loc[quiet, ["drafted", "verified", "accepted"]] = 0
    of.rounds.loc[quiet, "draft_ns"] = 1 * MS
    of.rounds.loc[quiet, "width"] = 1
    told = found(of)
    assert told.sums["looks"].tolist() == [2, 2] and told.sums["look"] == pytest.approx([2 * 1 / 46] * 2)
    assert told.sums["draft"] == pytest.approx([38 * 6 / 46] * 2) and told.sums["drafted"].tolist() == [76, 76]
    terms = told.terms()
    assert terms.look == pytest.approx(1 / 46) and terms.guess == pytest.approx((38 * 6 - 38 * 1) / 46 / 76)
    assert terms.row == pytest.approx(40 * 2 / 46 / 116) and terms.rest == pytest.approx((2 * 5 + 2 * 23) / 46 / 40)
    assert told.narrows


def test_guesses_that_are_said_again_are_not_kept() -> None:
    of = cell(Arm(round_ms=100.0, per_round=1, repeat=1, drafted=1, accepted=1))
    told = found(of)
    assert told.terms().kept == 0.0 and not told.keeps and told.length == 1


def test_prices_of_rounds_and_of_their_surcharges() -> None:
    of = cell()
    table = case_of(of).runs
    own = turns(table)
    price = round_prices(table, Prices({1: 1.0, 3: 1.5}))
    assert (
        price[table.turns["owner"] == 0].tolist() == [1.0] * 40
        and price[table.turns["owner"] == 1].tolist() == [1.5] * 20
    )
    assert np.isnan(round_prices(table, Prices({1: 1.0}))[table.turns["owner"] == 1]).all()
    assert own.surcharges(table, "treatment", price) == pytest.approx(NOTHING)
    plain, extra = own.priced(table, price, np.array([[0.5, 0.25, 0.0], [9.0, 9.0, 9.0]]))
    assert plain == pytest.approx([40 * 0.046, 30 * 0.046, 30 * 0.046, 40 * 0.046] * 2)
    assert extra == pytest.approx([0.75 * 0.046] * 8)
    of.rounds.loc[of.rounds["run"].isin((0, 3, 4, 7)) & (of.rounds["round"] == 1), "decode_ns"] = 69 * MS
    late = case_of(of).runs
    assert turns(late).surcharges(late, "treatment", price) == pytest.approx(np.array([[0, 0.5, 0]] * 2))
    mine = late.of("treatment")
    assert turns(late).share_switched(late, mine) == pytest.approx(2 / 20)
    assert np.isnan(turns(late).share_switched(late, np.zeros(8, dtype=bool)))


def on_a_gpu(blocks: int, slow: tuple[int, ...] = (), paused: float = 1.0) -> Cell:
    """Plain steps of 50 ms, whose first two after a prefill take 160 and 140: there the host is waited for.

    A decode of width 3 costs 1.5 steps, and 2 more in the first two after a change; one stream alone pays 5 more. The
    controls are in the first block. While a run of `slow` ran the host took 1.6 times as long, and the first of the
    sabotage's runs paused in its second decode.
    """
    arms = {"baseline": Arm(), "treatment": Arm(75.0, drafted=2), "sabotage": Arm(75.0, drafted=2), "solo": Arm()}
    first = {"baseline": (160, 140), "treatment": (175, 175), "sabotage": (175, 175), "solo": (300, 300)}
    builder = Builder(default_config(), arms, n_predict=21)
    for block in range(blocks):
        half = ("baseline", "treatment") if block else ("baseline", "sabotage", "solo", "treatment")
        builder.block(block, (*half, *reversed(half)), f"p{block}")
    cell = builder.build()
    for run, arm in zip(cell.runs["run"], cell.runs["arm"], strict=True):
        for number in (0, 1):
            at = (cell.rounds["run"] == run) & (cell.rounds["round"] == number)
            by = (1.6 if run in slow else 1.0) * (paused if (arm, run, number) == ("sabotage", 1, 1) else 1.0)
            cell.rounds.loc[at, ["decode_ns", "total_ns"]] = int(first[arm][number] * by * MS)
    return cell


def surcharges_of(cell: Cell, arm: str = "treatment") -> np.ndarray:
    table = case_of(cell).runs
    told: np.ndarray = turns(table).surcharges(table, arm, round_prices(table, Prices({1: 1.0, 3: 1.5})))[0]
    return told


def test_what_a_change_of_width_adds_is_told_by_arms_that_change_to_the_same_width() -> None:
    """One stream alone changes to another width, which is other work for the host: it is asked last."""
    for arm in ("treatment", "sabotage"):
        assert surcharges_of(on_a_gpu(2), arm) == pytest.approx([2.0, 2.0, 0.0])
    assert surcharges_of(on_a_gpu(2, paused=3.0)) == pytest.approx([2.0, 2.0, 0.0]), "of two values the lesser"


@pytest.mark.parametrize("held", [range(8), range(4), (0, 1)])
def test_a_control_that_ran_while_the_host_was_slow_is_held_against_the_plain_run_beside_it(held) -> None:
    """The four other blocks tell what is usual; with one block alone nothing does, and it is the middle."""
    assert surcharges_of(on_a_gpu(5, slow=tuple(held))) == pytest.approx([2.0, 2.0, 0.0])
    half = surcharges_of(on_a_gpu(1, slow=(0, 1)))
    assert half == pytest.approx([3.5 * (1 + 1.6) / 2 - 1.5] * 2 + [0.0])


def test_where_no_first_decode_waits_for_the_host_all_of_them_tell() -> None:
    cell = on_a_gpu(2)
    plain = cell.rounds["run"].isin(cell.runs.loc[cell.runs["arm"] == "baseline", "run"]) & (cell.rounds["round"] < 2)
    cell.rounds.loc[plain, ["decode_ns", "total_ns"]] = 70 * MS
    assert surcharges_of(cell) == pytest.approx([(2.0 + 5.0) / 2] * 2 + [0.0])


def test_a_round_of_the_start_has_a_surcharge_of_its_own() -> None:
    of = cell()
    price = round_prices(case_of(of).runs, Prices({1: 1.0, 3: 1.5}))
    first = of.rounds["run"].isin((1, 2, 5, 6)) & (of.rounds["round"] == 0)
    of.rounds.loc[first, "phase"] = "startup"
    table = case_of(of).runs
    _, extra = turns(table).priced(table, price, np.array([[0.5, 0.25, 0.0], [3.0, 2.0, 0.0]]))
    assert extra == pytest.approx([0.75 * 0.046, 3.25 * 0.046, 3.25 * 0.046, 0.75 * 0.046] * 2)


def test_a_guess_that_the_model_decodes_itself() -> None:
    of = cell()
    table = case_of(of).runs
    assert np.isnan(turns(table).redecode_cost(table, table.of("treatment")))
    mine = of.rounds["run"].isin((1, 2, 5, 6))
    of.rounds.loc[mine, "redecoded"] = 2
    of.rounds.loc[mine, "draft_ns"] = 115 * MS
    table = case_of(of).runs
    assert turns(table).redecode_cost(table, table.of("treatment")) == pytest.approx(115 / 46 / 2)
    assert not found(of).settles
    of.rounds.loc[of.rounds.index[mine][0], "redecoded"] = 1
    table = case_of(of).runs
    assert np.isnan(turns(table).redecode_cost(table, table.of("treatment")))


def test_units_are_prompts_or_the_seeds_of_one() -> None:
    of = cell()
    table = case_of(of).runs
    every = np.ones(8, dtype=bool)
    one = guessing(table, turns(table), NOTHING, table.block == 0)
    assert one is not None and one.sums["runs"].tolist() == [2]
    warm = guessing(table, turns(table), NOTHING, table.block == 0, 0.7)
    assert warm is not None and warm.sums["runs"].tolist() == [1, 1]
    both = guessing(table, turns(table), NOTHING, every, 0.7)
    assert both is not None and both.sums["runs"].tolist() == [2, 2]
    assert guessing(table, turns(table), NOTHING, np.zeros(8, dtype=bool)) is None


def test_the_step_of_a_block_with_one_plain_round_is_that_round() -> None:
    arms = {"baseline": Arm(round_ms=50.0, host_ms=4.0), "treatment": Arm(round_ms=80.0)}
    builder = Builder(default_config(), arms, n_predict=2)
    for block in range(2):
        builder.block(block, ("baseline", "treatment"), f"p{block}")
    assert turns(case_of(builder.build()).runs).step == pytest.approx([0.046] * 4)
