"""Pictures of the page for the README: `python -m tests.report.html.screenshots` takes them of the reference's page."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from PIL import Image

from bench.readme import ROOT

FOLDER = ROOT / "docs" / "images"
PAGE = ROOT / "reports" / "reference" / "index.html"
CELL = "#cell/amd-epyc-2c/bd724658bd3b"
SHOTS = {
    "page": ("", {"viewport": {"width": 1200, "height": 820}, "color_scheme": "light"}),
    "reel": (CELL, {"viewport": {"width": 1200, "height": 820}, "color_scheme": "dark"}),
    "phone": ("", {"viewport": {"width": 375, "height": 720}, "color_scheme": "light"}),
}  # fmt: skip
"""Where each begins and what it is seen on."""
COLOURS = 64
ROUND = "14"
"""Where the reel stands: the diagonal is drawn, and one sees that there is more."""


def take(browser: Any, page: Path, out: Path) -> list[Path]:
    """Takes them all into a folder, in few colours so that they stay small."""
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for name, (fragment, how) in SHOTS.items():
        context = browser.new_context(**how)
        opened = context.new_page()
        opened.goto(page.as_uri() + fragment)
        opened.wait_for_selector("html[data-ready=all]")
        if fragment:
            opened.wait_for_selector("dialog[open] .reel")
            opened.locator(".reel input[type=range]").first.fill(ROUND)
        picture = Image.open(io.BytesIO(opened.screenshot())).convert("RGB")
        made.append(out / f"{name}.png")
        picture.quantize(COLOURS, dither=Image.Dither.NONE).save(made[-1], optimize=True)
        context.close()
    return made


def main() -> None:
    from playwright.sync_api import sync_playwright

    from tests.report.html.conftest import CHROMIUM

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for path in take(browser, PAGE, FOLDER):
            print(f"{path}: {path.stat().st_size} bytes")
        browser.close()


if __name__ == "__main__":
    main()
