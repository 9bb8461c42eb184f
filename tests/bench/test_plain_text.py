"""Text that somebody else wrote does nothing where it is written: not in a terminal, a page, a figure or a sheet."""

from __future__ import annotations

import csv
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml

from bench.cli import main
from bench.judge.tables import CONTROLS
from bench.plain_text import csv_cell, markdown, plain_lines, plain_text
from tests.faults.stored import unsealed

TEXTS = [
    r"$\nosuch{x$", "costs $5 and $6", "\x1b]0;title\x07", "\x1b[2Jgone", "\x9b2J", "nul\0l",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))", "![x](http://example.org/x.png)", "a\u202eb\u2066c", "line\n# INJECTED\n\n| a |",
    "=1+2", "+cmd|' /C calc'!A0", "@SUM(A1)", "{{ 7 * 7 }} [bold]x[/bold] `a` | b",
    "x" * 5000, "\u2028# INJECTED", "-2+3", "\ufffe",
]  # fmt: skip
NEVER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufffe]")


def test_plain_text_stays_as_it_is() -> None:
    for text in ("Qwen3.6 27B, Q6_K (half)", "größer als 5 µs, 数", "a*b_c `d`"):
        assert plain_text(text) is text or plain_text(text) == text
        assert markdown(text) == csv_cell(text) == text
    assert plain_lines("a\nb\r\nc\x1b[1m") == "a\nb c\ufffd[1m"
    assert [csv_cell(text) for text in ("-1.5", "+3e5", "-12 %", "-", "=1", "-a")] == [
        "-1.5", "+3e5", "-12 %", "'-", "'=1", "'-a",
    ]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_nothing_is_left_that_acts(text: str) -> None:
    for made in (plain_text(text), markdown(text), csv_cell(text)):
        assert not NEVER.search(made) and "\n" not in made
        made.encode()
    assert not re.search(r"<\w|(?<!\\)\[[^\]]*\]\(", markdown(text))


def planted(results: Path, text: str) -> None:
    """Contrasts and profiles without a manifest, with a text wherever a record has words."""
    for kind in ("contrast", "profile"):
        for place, source in enumerate(unsealed(kind)[:2]):
            folder = results / "box" / f"{kind}{place}"
            shutil.copytree(source, folder)
            config = yaml.safe_load((folder / "cell.yaml").read_text())
            config["model"]["name"] = text
            for number, item in enumerate((config.get("prompts") or {}).get("items", [])):
                item["class"] = TEXTS[(TEXTS.index(text) + number) % len(TEXTS)]
            (folder / "cell.yaml").write_text(yaml.safe_dump(config))
            env = json.loads((folder / "env.json").read_text())
            env["engine"]["build"] = env["machine"]["cpu"] = text
            env["machine"]["gpus"] = [{"name": text}]
            (folder / "env.json").write_text(json.dumps(env))
            if place:
                status = {"state": "failed" if kind == "contrast" else "unsupported", "reason": text, "seconds": 1.0}
                (folder / "status.json").write_text(json.dumps(status))


@pytest.mark.parametrize("place", [0, 4, 8, 12, 16])
def test_a_report_over_records_that_say_it(
    tmp_path: Path, place: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is planted makes other cells of these, which are void; here their figures are to be drawn all the same.
    kept = {kind: [name for name in names if "invariants" not in name] for kind, names in CONTROLS.items()}
    monkeypatch.setattr("bench.judge.measure.case.CONTROLS", kept)
    planted(tmp_path / "results", TEXTS[place])
    out = tmp_path / "reports"
    assert main(["report", f"results={tmp_path / 'results'}", f"reports={out}"]) == 0
    told = capsys.readouterr()
    page = (out / "report.md").read_text()
    for text in (told.out, told.err, page):
        assert not NEVER.search(text)
    # The page folds its tables and breaks its lines with tags of its own.
    own = r"(?!(?:br|details|summary)>)"
    assert not re.search(rf"<{own}\w|^# INJECTED|(?<!\\)\[[^\]]*\]\((?!figures/)", page, re.MULTILINE)
    for path in out.glob("*.csv"):
        with path.open(newline="") as file:
            rows = list(csv.reader(file))
        assert len({len(row) for row in rows}) == 1, path
        words = [word for row in rows for word in row]
        assert not [word for word in words if word[:1] in ("=", "+", "@") or NEVER.search(word)], path
    drawn = list(out.glob("figures/*.svg"))
    assert drawn
    for path in drawn:
        ElementTree.parse(path)
