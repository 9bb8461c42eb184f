"""docs/audit.md: every text in it gives the answer that stands below it, and every flag of the code is in its table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.audit.audit import judge
from bench.audit.options import AuditOptions
from bench.audit.record import record_of
from bench.audit.text import source_of

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = (REPOSITORY / "docs" / "audit.md").read_text()
EXAMPLES = re.findall(r"### (.+?)\n\n```text\n(.*?)\n```\n\n(.+?)\n", DOCUMENT, re.DOTALL)


@pytest.mark.parametrize(("title", "text", "answer"), EXAMPLES, ids=[title for title, _, _ in EXAMPLES])
def test_a_text_gives_its_answer(title: str, text: str, answer: str) -> None:
    assert judge(record_of(source_of(title, text.encode())), AuditOptions()).answer == answer


def test_there_is_one_text_of_each_tool() -> None:
    assert len(EXAMPLES) >= 30


def test_every_flag_is_in_the_table() -> None:
    sources = [path.read_text() for path in (REPOSITORY / "bench" / "audit").rglob("*.py")]
    codes = {code for text in sources for code in re.findall(r'Flag\(\s*\(?"([A-Z_]+)"', text)}
    assert len(codes) > 25 and not [code for code in sorted(codes) if code not in DOCUMENT]
