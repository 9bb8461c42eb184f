"""What tests of the page share: the blocks that are packed in one, and the numbers of a text."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report.html.page import Place, page_html
from bench.report.tables.csv_files import Ordered
from tests.report import report_stand_ins as stand_ins

BLOCK = re.compile(r'<script type="application/octet-stream" id="([^"]+)">([^<]*)</script>')


def page(findings: object, claims: Sequence[dict], **more: Any) -> str:
    return page_html(Ordered(findings), claims, getattr(findings, "traces", []), more.pop("place", Place()), **more)


def full(**more: Any) -> str:
    return page(stand_ins.full(("laptop", "server")), stand_ins.claims(), **more)


def unpacked(text: str) -> dict[str, str]:
    """Every packed block by its name."""
    return {name: gzip.decompress(base64.b64decode(block)).decode() for name, block in BLOCK.findall(text)}


def rows(text: str, table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(unpacked(text)[f"table-{table}"])))


def data(text: str) -> dict[str, Any]:
    return json.loads(unpacked(text)["page-data"])


def without_blocks(text: str) -> str:
    """The page as it stands there, without what is packed."""
    return BLOCK.sub("", text)


def until(page: Any, expression: str) -> None:
    """Waits until something is true on a page. Playwright's own way asks the page to run a text, which it refuses."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"it never became true: {expression}")


def files_of(folder: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in folder.glob("*.csv")}
