"""The real llama-server, where `make peers` has built it: asked, judged, kept, and several requests at once.

The toy of five layers and its texts are short, so no speed is looked at.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.judge import judge
from bench.records.cells import load_cell
from bench.run.sweep import sweep
from bench.setup.peer_build import built

PROGRAM = built(Path(sys.prefix)).get("llama-server")
pytestmark = [
    pytest.mark.skipif(PROGRAM is None and not os.environ.get("CI"), reason="no llama-server; `make peers` builds one"),
]
SHORT = ("model=pti-tiny", "prompts=short", "measure=quick", "measure.classes=[prose,structured]", "n_predict=24",
         "engine.threads=1", "engine.n_ctx=256", "machine=toy")  # fmt: skip


def test_there_is_one_where_it_has_to_be() -> None:
    assert PROGRAM is not None, "run `make peers`: these tests need llama-server"


def measured(tmp_path: Path, treated: str, *more: str):
    """The cell of a sweep of two commands, and what the judge says of it."""
    outcome, _ = sweep([*SHORT, f"engine.server={PROGRAM}", f"treatment.engine.server={treated}",
                        f"results={tmp_path}", *more])  # fmt: skip
    assert not outcome.failed, [reason for _, reason in outcome.failed]
    (one,) = outcome.cells
    stored = load_cell(one.folder)
    return stored, judge([stored])


def void(found) -> dict[str, str]:
    return {row["control"]: row["sentence"] for row in found.controls if row["severity"] == "void"
            and row["control"] != "again"}  # fmt: skip


def test_a_server_against_itself_says_the_same_by_ids(tmp_path: Path) -> None:
    stored, found = measured(tmp_path, f"{PROGRAM} --alias same")
    assert not void(found)
    (row,) = [one for one in found.trials if one["prompt_class"] == "all"]
    assert row["lossless"] == "identical" and row["identical_share"] == 1.0
    assert {one["by"] for one in stored.facts["lossless"]} == {"token ids"}
    assert stored.env["engine"]["build"].startswith("llama-server")
    assert (stored.served["tokens"] == 24).all() and (stored.served["answer_ms"] > 0).all()


def test_a_drafter_that_remembers_is_measured_cold_and_its_replay_apart(tmp_path: Path) -> None:
    stored, found = measured(tmp_path, f"{PROGRAM} --spec-type ngram-mod", "n_predict=64")
    assert not void(found)
    kept = [one for one in found.servers if "again" in str(one.get("when", ""))]
    assert kept or (stored.runs["arm"] == "kept").sum() == 4
    treated = stored.runs["run"][stored.runs["arm"] == "treatment"]
    drafted = [int(count) for run, count in zip(stored.served["run"], stored.served["drafted"], strict=True)
               if run in treated]  # fmt: skip
    assert len(drafted) == len(treated)


def test_two_requests_at_once(tmp_path: Path) -> None:
    stored, found = measured(tmp_path, f"{PROGRAM} --alias same", "streams=2")
    assert not void(found)
    assert {row["scope"] for row in found.trials} == {"answer", "aggregate"}
    assert (stored.served["stream"] == 1).any()


def test_a_kept_server_answers_everything_and_one_that_drafts_is_void(tmp_path: Path) -> None:
    stored, found = measured(tmp_path / "same", f"{PROGRAM} --alias same", "engine.kept=true")
    assert not void(found) and stored.facts["sides"] == "kept"
    assert len(set(stored.served["starts"].tolist())) <= 2
    _, found = measured(tmp_path / "mod", f"{PROGRAM} --spec-type ngram-mod", "engine.kept=true")
    assert found.servers
