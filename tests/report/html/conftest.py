"""One browser for all tests of the page, and the page of the reference records, made once.

The browser is the system's own Chromium: Playwright's wheel brings none that could be fetched.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.judge.summary import summarize
from bench.readme import REFERENCE
from bench.report import write_report
from bench.stored import judged

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
NOISE = ("Autofill.",)
"""Of the browser's own tools, not of the page."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # In a container as root Chromium has no sandbox of its own to use; what it opens here is this project's page.
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the reference's report, without figures."""
    out = tmp_path_factory.mktemp("reports")
    found = judged(REFERENCE, "all")
    write_report(found[0], found[1], out, figures=False, summary=summarize(found[0], found[1]), results=REFERENCE)
    return out


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page and waits until it is whole. Whatever it logs, throws or asks of a network fails the test."""
    contexts, trouble = [], []

    def open_page(path: Path, fragment: str = "", wait: str = "all", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 850}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on(
            "console", lambda message: trouble.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: None if request.url.startswith("file://") else trouble.append(request.url))
        page.goto(path.as_uri() + fragment)
        page.wait_for_selector(f"html[data-ready={wait}]" if wait == "all" else "html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not [one for one in trouble if not one.startswith(NOISE)]
