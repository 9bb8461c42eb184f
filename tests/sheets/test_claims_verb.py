"""`claims new` and `claims check`: a valid entry from words or answers, and what would judge it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cli import main
from bench.errors import UserError
from bench.judge.claims.sheet import load_sheet
from bench.plan.config import CONFIGS
from bench.sheets.entry import absent, checked, completed, words_of
from bench.sheets.outlook import outlook
from bench.sheets.questions import answered

ROOT = CONFIGS.parent
RESULTS = ROOT / "results"
WORDS = ["id=mine.lookup", "says=Lookup gains 1.30x: on code edits.", "source.document=a post", "metric=speedup",
         "source.date=2026-11-30", "published=1.30", "scope.method=lookup", "scope.prompt_class=code_edit",
         "conditions.machine=amd-epyc-2c", "conditions.model=smollm2-135m", "conditions.quantization=q4_1"]  # fmt: skip


@pytest.fixture(autouse=True)
def fresh(tmp_path_factory, monkeypatch):
    """A checkout in which nothing was measured yet: what a folder of results holds besides is none of these tests'."""
    place = tmp_path_factory.mktemp("checkout")
    (place / "results").mkdir()
    (place / "results" / "reference").symlink_to(RESULTS / "reference")
    monkeypatch.chdir(place)


def test_an_entry_of_words_is_a_sheet_and_keeps_its_digits(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    assert main(["claims", "new", str(path), *WORDS]) == 0
    (claim,) = load_sheet(path)
    assert (claim.printed, claim.unit, claim.rule.test, claim.evidence) == ("1.30", "x", "ratio", "stated")
    assert claim.says == "Lookup gains 1.30x: on code edits."
    flags = [part for word in WORDS for part in (f"--{word.partition('=')[0]}", word.partition("=")[2])]
    assert main(["claims", "new", str(path), *flags, "--id=mine.other", "--published=[1.2, 1.40]"]) == 0
    assert [claim.printed for claim in load_sheet(path)] == ["1.30", "1.2 to 1.40"]
    told = " ".join(capsys.readouterr().err.split())
    assert "judge it (amd-epyc-2c): " in told and "`python -m bench sweep method=lookup" in told
    assert "cells to run" in told or "cells are stored" in told


def test_without_a_file_the_entry_alone_is_on_standard_output(tmp_path, capsys):
    assert main(["claims", "new", *WORDS]) == 0
    (tmp_path / "sheet.yaml").write_text(capsys.readouterr().out)
    assert len(load_sheet(tmp_path / "sheet.yaml")) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["idd=x"], "did you mean 'id'"), (["source.dokument=x"], "did you mean 'document'"),
        (["condition.machine=x"], "did you mean 'conditions.machine'"), (["rule.tset=x"], "did you mean 'test'"),
        (["id=x"], "lacks says, source.document, source.date, metric, published"), (["--id"], "--id has no value"),
        ([*WORDS, "metric=spedup"], "unknown metric 'spedup'; did you mean 'speedup'"),
        ([*WORDS, "scope.methd=lookup"], "unknown scope key 'methd'"),
        ([*WORDS, "scope.ngrm=3"], "did you mean 'ngram'"), (["a.yaml", "b.yaml"], "give one file"),
        ([*WORDS, "scope.method=lookpu"], "did you mean 'lookup'"), ([*WORDS, "unit=parsec"], "choose from"),
        ([*WORDS, "source.date=yesterday"], "is not a day"), ([*WORDS, "published=fast"], "write a number"),
        ([*WORDS, "evidence=measurd"], "did you mean 'measured'"), ([*WORDS, "rule.test=rato"], "did you mean 'ratio'"),
        ([*WORDS, "published=0.9", "rule.test=ratio"], "is for a gain above 1"),
        ([word for word in WORDS if not word.startswith("scope")], "lacks a scope"),
    ],
)  # fmt: skip
def test_every_mistake_is_one_sentence_with_the_nearest_word(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert main(["claims", "new", *words]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err and printed.err.count("\n") == 1 and printed.out == ""
    assert list(tmp_path.iterdir()) == []


def test_an_entry_that_cannot_be_leaves_the_sheet_as_it_was(tmp_path):
    path = tmp_path / "mine.yaml"
    main(["claims", "new", str(path), *WORDS])
    before = path.read_bytes()
    assert main(["claims", "new", str(path), *WORDS]) == 2, "the id is taken"
    assert main(["claims", "new", str(path), *WORDS, "id=x", "unit=parsec"]) == 2
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["mine.yaml"]
    assert main(["claims", "new", str(tmp_path / "no" / "x.yaml"), *WORDS]) == 2


@pytest.mark.parametrize("metric", ["rate", "aggregate", "step_cost", "acceptance", "tokens_per_round", "lossless",
                                    "memory", "bandwidth", "trial"])  # fmt: skip
def test_what_follows_from_a_metric_can_be_judged(metric):
    words = ["id=a.b", "says=x", "source.document=p", "source.date=2026-11-30", f"metric={metric}",
             f"published={'1' if metric == 'lossless' else '0.5'}"]  # fmt: skip
    scope = {"step_cost": "scope.width=4", "memory": "scope.streams=2", "bandwidth": "scope.threads=2",
             "aggregate": "scope.method=packed", "trial": "scope.difference=build"}  # fmt: skip
    _, given = words_of([*words, scope.get(metric, "scope.method=lookup")])
    assert checked(completed(given)).startswith("- id: a.b\n")


def test_questions_ask_for_what_is_absent_until_it_can_be_judged():
    replies = iter(["mine.q", "It gains.", "a post", "2026-11-30", "sped", "speedup", "lookpu", "lookup", "", "", "0.9",
                    "", "", "", "", "", "", "ratio", "published=1.10"])  # fmt: skip
    asked: list[str] = []
    entry = answered({}, frozenset(), lambda prompt: asked.append(prompt) or next(replies))
    assert absent(entry) == [] and next(replies, None) is None
    assert checked(entry) and str(entry["published"]) == "1.10" and entry["scope"]["per"] == "answer"
    assert not any("streams" in prompt for prompt in asked), "lookup has none"
    _, given = words_of(WORDS)
    again: list[str] = []
    answered(given, frozenset(), lambda prompt: again.append(prompt) or "")
    assert not any(prompt.startswith(("id:", "says:", "metric:", "scope.method:")) for prompt in again)


def test_a_conversation_on_a_real_terminal(tmp_path):
    path = tmp_path / "mine.yaml"
    replies = ["mine.tty", "It gains.", "a post", "2026-11-30", "", "lookup", "", "", "1.20", *[""] * 7]
    master, slave = pty.openpty()
    child = subprocess.Popen([sys.executable, "-m", "bench", "claims", "new", str(path)], cwd=ROOT, stdin=slave,
                             stdout=slave, stderr=slave, close_fds=True)  # fmt: skip
    os.close(slave)
    told = "".join(_talk(master, replies))
    assert child.wait(60) == 0, told
    assert load_sheet(path)[0].printed == "1.20" and "source.date: on which day" in told


def _talk(master: int, replies: list[str]) -> Iterator[str]:
    """Answer each prompt with the next reply; what was printed."""
    left, end = iter(replies), time.monotonic() + 100
    while time.monotonic() < end:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            text = os.read(master, 4096).decode(errors="replace")
        except OSError:  # the other end is closed
            return
        yield text
        if text.endswith(": "):
            os.write(master, (next(left, "") + "\n").encode())


def test_check_tells_every_mistake_and_judges_the_rest(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    main(["claims", "new", str(path), *WORDS])
    text = path.read_text()
    path.write_text(text + text.replace("mine.lookup", "mine.bad").replace("ratio", "rato")
                    + text.replace("mine.lookup", "mine.worse").replace("method: lookup", "method: lokup"))  # fmt: skip
    capsys.readouterr()
    assert main(["claims", "check", str(path)]) == 1
    printed = capsys.readouterr()
    assert printed.err.count("error: ") == 2 and "'mine.bad'" in printed.err and "'mine.worse'" in printed.err
    assert "did you mean 'ratio'" in printed.err and "did you mean 'lookup'" in printed.err
    assert "1 of 3 entries can be judged" in printed.out and "mine.lookup: judged on stored cells" in printed.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["chek"], "did you mean 'check'"), ([], "choose from: check, new"), (["check"], "give their files"),
     (["check", "/no/such.yaml"], "/no/such.yaml"), (["check", "result=x"], "did you mean 'results'")],
)  # fmt: skip
def test_a_verb_that_there_is_not_is_one_sentence(words, sentence, capsys):
    assert main(["claims", *words]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err and printed.err.count("\n") == 1


def test_every_kind_of_claim_of_the_shipped_sheets_is_told_apart():
    claims = load_sheet(CONFIGS / "claims" / "pti.yaml")
    kinds = {claim.rule.kind: claim for claim in claims}
    some = [claim for claim in claims if claim.id in ("pti.four_streams.rate", "pti.described_loop.tokens_per_round")]
    text = " ".join("\n".join(outlook([*kinds.values(), *some], Path("results"))).split())
    assert "judged by arithmetic, without any cell" in text and "a projection: nothing judges it" in text
    assert "a fact with a source" in text and "stored cells judge it (" in text


def test_a_claim_without_its_conditions_says_which_it_lacks(tmp_path):
    _, given = words_of([word for word in WORDS if not word.startswith("conditions")])
    (tmp_path / "one.yaml").write_text(checked(completed(given)))
    text = " ".join("\n".join(outlook(load_sheet(tmp_path / "one.yaml"), tmp_path)).split())
    assert "it names no machine, model, quantization; add conditions.machine=.." in text
    assert "no stored cell of" in text
    with pytest.raises(UserError, match="lacks id, says"):
        completed({})
