"""The token reel by mouse and by keyboard, against counts of the stored ledger by pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.readme import REFERENCE
from tests.report.html.pages import until

CELLS = ["amd-epyc-2c/bd724658bd3b", "amd-epyc-2c/1fbe50d3a7cb", "amd-epyc-2c/5bddcf34e5ea", "amd-epyc-2c/53f947bc2e1c"]


def opened(visit, folder: Path, cell: str) -> Any:
    page = visit(folder / "index.html", f"#cell/{cell}", wait="claims")
    page.wait_for_selector("dialog[open] .reel")
    return page


def told(page: Any) -> tuple[int, int, int]:
    """Counted, different, and plain decoding's tokens."""
    return tuple(int(text) for text in page.locator(".reel").first.locator("output").all_inner_texts()[:3])


def shown_run(page: Any) -> int:
    return int(page.locator("dialog h3", has_text="Token by token").first.inner_text().split("run ")[1].split(",")[0])


def of(cell: str, run: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Ledger of the run, and of the plain run of its block and seed that the page shows; and the runs."""
    folder = REFERENCE / cell
    ledger, runs = (pd.read_csv(folder / f"{name}.csv.gz") for name in ("ledger", "runs"))
    mine = runs[runs.run == run].iloc[0]
    plain = runs[(runs.arm == "baseline") & (runs.block == mine.block)].copy()
    plain["apart"] = (plain.seed != mine.seed) * 100 + (plain.order - mine.order).abs()
    other = plain.sort_values(["apart", "run"], kind="stable").iloc[0]
    return (ledger[ledger.run == run].assign(t=lambda rows: rows.t_ns - mine.start_ns),
            ledger[ledger.run == other.run].assign(t=lambda rows: rows.t_ns - other.start_ns), runs)  # fmt: skip


def moment(cell: str, ledger: pd.DataFrame, rounds: int) -> int:
    """Microseconds since the first token when a round had said its tokens; of a silent one, when it was over."""
    said = ledger[ledger["round"] == rounds - 1]
    if len(said) or not rounds:
        return round(said.t.max() / 1000) if rounds else 0
    table = pd.read_csv(REFERENCE / cell / "rounds.csv.gz")
    return int((table[(table.run == ledger.run.iloc[0]) & (table["round"] < rounds)].total_ns / 1000).round().sum())


def expected(cell: str, ledger: pd.DataFrame, plain: pd.DataFrame, rounds: int) -> tuple[int, int, int]:
    said = ledger[(ledger["round"] >= 0) & (ledger["round"] < rounds)]
    sure = set(map(tuple, ledger[ledger.source != "unverified"][["stream", "position"]].values))
    different = {place for place in map(tuple, said[["stream", "position"]].values) if place in sure}
    different -= set(map(tuple, ledger[ledger["round"] < 0][["stream", "position"]].values))
    beside = (plain["round"] >= 0) & ((plain.t / 1000).round() <= moment(cell, ledger, rounds))
    return len(said), len(different), int(beside.sum())


@pytest.mark.parametrize("cell", CELLS)
def test_by_keyboard_every_count_is_the_ledgers(visit, reference, cell):
    page = opened(visit, reference, cell)
    ledger, plain, _ = of(cell, shown_run(page))
    rounds = int(ledger["round"].max()) + 1
    slider = page.locator(".reel input[type=range]").first
    slider.focus()
    assert told(page) == expected(cell, ledger, plain, rounds)
    page.keyboard.press("Home")
    assert told(page) == (0, 0, 0)
    for at in range(1, min(rounds, 12) + 1):
        page.keyboard.press("ArrowRight")
        assert told(page) == expected(cell, ledger, plain, at), at
        assert slider.get_attribute("aria-valuetext").startswith(f"after round {at} of {rounds}: ")
    page.keyboard.press("End")
    assert told(page)[:2] == expected(cell, ledger, plain, rounds)[:2]


def test_by_mouse_a_round_of_the_picture_is_shown(visit, reference):
    cell = CELLS[0]
    page = opened(visit, reference, cell)
    ledger, plain, _ = of(cell, shown_run(page))
    picture = page.locator(".reel svg.ladder").first
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    seen = set()
    page.mouse.move(box["x"] + 100, box["y"] + box["height"] * 0.1)
    page.mouse.down()
    for share in (0.1, 0.3, 0.5, 0.7):
        page.mouse.move(box["x"] + 100, box["y"] + box["height"] * share)
        at = int(page.locator(".reel input[type=range]").first.input_value())
        assert told(page) == expected(cell, ledger, plain, at)
        seen.add(at)
    page.mouse.up()
    assert len(seen) == 4
    slider = page.locator(".reel input[type=range]").first.bounding_box()
    page.mouse.click(slider["x"] + slider["width"] / 2, slider["y"] + slider["height"] / 2)
    assert int(page.locator(".reel input[type=range]").first.input_value()) in (12, 13, 14)


def test_a_round_says_which_token_where_and_which_guess_was_taken(visit, reference):
    page = opened(visit, reference, CELLS[0])
    run = shown_run(page)
    page.locator(".reel input[type=range]").first.fill("7")
    story = page.locator(".reel .story").first.inner_text()
    ledger, _, _ = of(CELLS[0], run)
    rows = ledger[ledger["round"] == 6]
    assert story.startswith("Round 7 of 26, one decode of 4 rows")
    for position in rows.position:
        assert f"position {position}" in story
    assert story.count("(again)") == 3 and story.count("taken") == 3
    assert page.locator(".reel .said .now").count() == len(rows)


def test_it_plays_and_stops(visit, reference):
    page = opened(visit, reference, CELLS[0])
    page.locator(".reel .play").first.click()
    until(page, "Number(document.querySelector('.reel input[type=range]').value) >= 3")
    page.locator(".reel .play").first.click()
    at = page.locator(".reel input[type=range]").first.input_value()
    page.wait_for_timeout(300)
    assert page.locator(".reel input[type=range]").first.input_value() == at


def test_steps_and_tokens_stay_inside_the_run(visit, reference):
    cell = CELLS[1]
    page = opened(visit, reference, cell)
    page.locator(".reel button", has_text="▶").first.click()
    ledger, plain, _ = of(cell, shown_run(page))
    assert told(page) == expected(cell, ledger, plain, int(ledger["round"].max()) + 1)
    page.locator(".reel button", has_text="◀").first.click()
    assert told(page) == expected(cell, ledger, plain, int(ledger["round"].max()))
