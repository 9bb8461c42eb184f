"""The page in a real browser: it opens, sorts, filters and leads from a claim to the run behind it, for everybody."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops

from tests.report.html import screenshots
from tests.report.html.pages import until

CELL, LEAVING = "amd-epyc-2c/bd724658bd3b", "amd-epyc-2c/1fbe50d3a7cb"
"""The second one has answers that leave the baseline."""


def texts(page: Any, selector: str) -> list[str]:
    return page.eval_on_selector_all(selector, "found => found.map((one) => one.textContent)")


def column(page: Any, name: str, host: str = "#claims-list") -> list[str]:
    """The texts of a column of a table that is shown."""
    names = page.eval_on_selector_all(f"{host} thead th", "found => found.map((one) => one.dataset.name)")
    place = names.index(name) + 1
    return texts(page, f"{host} tbody tr:not(.open) > :nth-child({place})")


def claims(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "claims.csv").open(newline="")))


def test_it_opens_with_the_headlines_and_every_claim(visit, reference):
    page = visit(reference / "index.html")
    assert page.locator("ol.headlines > li").count() >= 8
    assert (
        f"{len(claims(reference))} of {len(claims(reference))} rows" in page.locator("#claims-list .count").inner_text()
    )
    assert page.locator("figure svg.chart").count() > 5
    assert page.title()


def test_claims_are_sorted_by_what_a_column_says(visit, reference):
    page = visit(reference / "index.html", wait="claims")
    while page.locator("#claims-list .more").is_visible():
        page.locator("#claims-list .more").click()
    verdicts = column(page, "verdict")
    assert verdicts[0] == "refuted" and verdicts == sorted(verdicts, key=list(dict.fromkeys(verdicts)).index)
    head = page.locator('#claims-list th[data-name="measured"]')
    for turn, order in ((1, "ascending"), (-1, "descending")):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
        figures = page.eval_on_selector_all(
            "#claims-list tbody tr:not(.open) > :nth-child(4)",
            "found => found.map((one) => one.querySelector('data')?.value ?? null)",
        )
        known = [float(figure) for figure in figures if figure is not None]
        assert known == sorted(known, reverse=turn < 0) and len(known) > 100
        assert all(figure is None for figure in figures[len(known) :])


def test_claims_are_filtered_by_verdict_and_searched(visit, reference):
    page = visit(reference / "index.html", wait="claims")
    rows = claims(reference)
    page.locator('#claims-list .chip[data-value="misstated"]').click()
    assert set(column(page, "verdict")) == {"misstated"}
    assert len(column(page, "verdict")) == sum(row["verdict"] == "misstated" for row in rows)
    page.locator('#claims-list .chip[data-value="misstated"]').click()
    page.locator("#claims-list input[type=search]").fill("38.1")
    found = [row for row in rows if any("38.1" in value for value in row.values())]
    assert f"{len(found)} of {len(rows)} rows" in page.locator("#claims-list .count").inner_text()
    page.locator("#claims-list input[type=search]").fill("nothing says this")
    assert page.locator("#claims-list tbody tr").count() == 0


def test_two_clicks_lead_from_the_first_screen_to_the_reason_and_the_run(visit, reference):
    page = visit(reference / "index.html", wait="claims")
    headline = page.locator("ol.headlines > li", has_text="38.1 tok/s")
    box = headline.bounding_box()
    assert box["y"] + box["height"] < 850, "it is on the first screen"
    headline.locator(".says a").click()
    opened = page.locator("#claims-list tr.open")
    assert "counts each token 3.8 times" in opened.inner_text()
    for words in ("source", "its conditions", "its author since", "rule", "machine=mi50", "withdrawn"):
        assert words in opened.inner_text(), words
    opened.locator("a.cell-link").first.click()
    page.wait_for_selector("dialog[open] .reel")
    assert re.search(
        r"86 tokens said in 26 rounds, 23 different ones", page.locator(".verdict-line").first.inner_text()
    )
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0 and page.url.endswith("38.1") is False
    headline.locator("a.run").first.click()
    page.wait_for_selector("dialog[open] .reel")


def test_a_cell_has_everything_behind_its_number(visit, reference):
    page = visit(reference / "index.html", f"#cell/{CELL}", wait="claims")
    page.wait_for_selector("dialog[open] .reel")
    panel = page.locator("dialog")
    told = panel.inner_text()
    for words in ("Runs in order", "Rounds over time", "First difference", "python -m bench rerun", "Raw records",
                  "Claims that rest on it", "Under which conditions"):  # fmt: skip
        assert words in told, words
    panel.locator("summary", has_text="runs with clock").click()
    assert panel.locator("table.runs tbody tr").count() == 39
    panel.locator("summary", has_text="Configuration").click()
    assert "n_predict: 24" in panel.locator("pre.raw").inner_text()
    link = panel.locator("a", has_text="ledger.csv.gz").get_attribute("href")
    assert (reference / link).resolve().is_file()
    panel.locator("button.close").click()
    assert page.locator("dialog[open]").count() == 0


def test_a_cell_that_left_the_text_shows_where_with_both_gaps(visit, reference):
    page = visit(reference / "index.html", f"#cell/{LEAVING}", wait="claims")
    page.wait_for_selector("dialog[open] .reel")
    assert page.locator("dialog .said .differs").count() >= 2
    table = page.locator("dialog .grid", has_text="arm's gap")
    assert table.locator("tbody tr").count() > 5
    assert page.locator("dialog .texts").count() >= 2


def test_a_profile_and_an_unknown_cell_have_a_panel_too(visit, reference):
    page = visit(reference / "index.html", "#cell/amd-epyc-2c/8ded458b1115", wait="claims")
    page.wait_for_selector("dialog[open] h3")
    assert "step cost" in page.locator("dialog").inner_text()
    page.evaluate("location.hash = '#cell/nowhere/none'")
    page.wait_for_selector("dialog:has-text('No such cell')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_and_the_button_between_them(visit, reference, scheme):
    page = visit(reference / "index.html", wait="claims", color_scheme=scheme)

    def light() -> bool:
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", paper)[:3])) > 380

    assert light() == (scheme == "light")
    page.locator("#scheme").click()
    assert light() == (scheme == "dark")


@pytest.mark.parametrize("fragment", ["", "#claim/pti.four_streams.rate", f"#cell/{CELL}", f"#cell/{LEAVING}"])
def test_a_phone_needs_no_scrolling_sideways(visit, reference, fragment):
    page = visit(reference / "index.html", fragment, viewport={"width": 375, "height": 700})
    if "cell" in fragment:
        page.wait_for_selector("dialog[open] .reel")
    page.eval_on_selector_all("details", "found => found.forEach((one) => { one.open = true; })")
    until(page, "document.querySelectorAll('#speedup .grid').length >= 2")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert page.evaluate("document.querySelector('dialog').scrollWidth") <= 375


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", ["#claim/pti.four_streams.rate", f"#cell/{CELL}"])
def test_nothing_serious_stands_in_anybodys_way(visit, reference, scheme, fragment):
    from axe_playwright_python.sync_playwright import Axe

    page = visit(reference / "index.html", fragment, color_scheme=scheme)
    if "cell" in fragment:
        page.wait_for_selector("dialog[open] .reel")
    else:
        page.locator("#speedup details summary").last.click()
    # In the other scheme nothing but colours differs.
    only = {} if scheme == "light" else {"runOnly": ["color-contrast"]}
    found = Axe().run(page, options={"resultTypes": ["violations"], **only}).response["violations"]
    grave = [(one["id"], one["impact"], one["nodes"][0]["html"][:200], len(one["nodes"])) for one in found
             if one["impact"] in ("serious", "critical")]  # fmt: skip
    assert not grave


def test_the_page_prints(visit, reference):
    page = visit(reference / "index.html")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.pdf(format="A4").count(b"/Type /Page") > 3


def test_a_link_to_a_cell_is_one_to_the_whole_panel(visit, reference):
    page = visit(reference / "index.html", wait="claims")
    page.evaluate(f"location.hash = '#cell/{CELL}'")
    page.wait_for_selector("dialog[open] .reel")
    page.go_back()
    page.wait_for_selector("dialog:not([open])", state="attached")


def test_the_pictures_in_the_readme_are_of_this_page(browser, reference, tmp_path):
    """Letters differ from one machine's fonts to another's; size and most of what is drawn do not."""
    readme = (screenshots.ROOT / "README.md").read_text()
    for path in screenshots.take(browser, reference / "index.html", tmp_path):
        kept = screenshots.FOLDER / path.name
        assert f"docs/images/{path.name}" in readme and kept.stat().st_size < 150_000
        made, shown = (Image.open(one).convert("L") for one in (path, kept))
        assert made.size == shown.size
        apart = ImageChops.difference(made, shown).resize((40, 30))
        assert sum(value > 60 for value in apart.tobytes()) < 0.1 * 40 * 30, path.name
