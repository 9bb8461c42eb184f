"""The real llama-server, where `make peers` has built it: asked, judged, and with several requests at once.

The texts are short, so no speed is looked at.
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
pytestmark = pytest.mark.skipif(PROGRAM is None and not os.environ.get("CI"),
                                reason="no llama-server; `make peers` builds one")  # fmt: skip
SHORT = ("prompts=short", "measure=quick", "measure.classes=[prose]", "measure.again_blocks=1", "n_predict=16",
         "engine.threads=1", "engine.n_ctx=256")  # fmt: skip


def measured(tmp_path: Path, treated: str, *more: str):
    """The cell of a sweep of two commands, and what the judge says of it."""
    assert PROGRAM is not None, "run `make peers`: these tests need llama-server"
    outcome, _ = sweep([*SHORT, f"engine.server={PROGRAM}", f"treatment.engine.server={PROGRAM} {treated}",
                        f"results={tmp_path}", *more])  # fmt: skip
    assert not outcome.failed, [reason for _, reason in outcome.failed]
    (one,) = outcome.cells
    stored = load_cell(one.folder)
    return stored, judge([stored])


def void(found) -> dict[str, str]:
    """The checks that failed. One short block says nothing of how alike two runs are."""
    return {row["control"]: row["sentence"] for row in found.controls
            if row["severity"] == "void" and row["control"] not in ("again", "stall")}  # fmt: skip


def test_a_server_against_itself_says_the_same_by_ids(tmp_path: Path) -> None:
    stored, found = measured(tmp_path, "--alias same")
    assert not void(found)
    row = next(one for one in found.trials if one["prompt_class"] == "all")
    assert row["lossless"] == "identical" and row["identical_share"] == 1.0
    assert {one["by"] for one in stored.facts["lossless"]} == {"token ids"}
    assert stored.env["engine"]["build"].startswith("llama-server")
    assert (stored.served["told"] == 16).all() and (stored.served["answer_ms"] > 0).all()
    assert (stored.served["drafted"] == -1).all(), "a server that makes no guesses says nothing of them"


def test_a_drafter_that_remembers_is_cold_in_the_blocks_and_its_replay_stands_apart(tmp_path: Path) -> None:
    stored, found = measured(tmp_path, "--spec-type ngram-mod --spec-ngram-mod-n-match 4 --spec-ngram-mod-n-min 1",
                             "n_predict=48")  # fmt: skip
    assert not void(found)
    cold, again, _, last = (stored.served["drafted"][stored.served["run"] == run][0]
                            for run in stored.runs["run"][stored.runs["arm"] == "kept"])  # fmt: skip
    assert again > max(cold, 0) and last > max(cold, 0), "a kept ngram-mod replays the answer that it gave before"
    assert {row["when"] for row in found.servers} >= {"cold", "again", "after a foreign prompt", "again after it"}


CHAT = ("prompts.template=model", "measure.classes=[question]", "ignore_eos=false", "n_predict=96")
"""A question in the model's own chat template, whose answer ends by itself."""


def test_answers_that_end_by_themselves_are_compared_with_their_lengths(tmp_path: Path) -> None:
    stored, found = measured(tmp_path, "--alias same", *CHAT)
    assert not void(found), void(found)
    row = next(one for one in found.trials if one["prompt_class"] == "all")
    assert row["lossless"] == "identical" and 2 <= row["answer_tokens"] == row["baseline_answer_tokens"] <= 96
    ended = stored.served["told"] < 96
    if not ended.any():  # another build may say more than that
        assert not stored.facts.get("ends")
        return
    last = {int(stored.ledger["token"][stored.ledger["run"] == run][-1]) for run in stored.served["run"][ended]}
    assert last == set(stored.facts["ends"]), "what an answer ended with is what the record calls an end"


@pytest.mark.parametrize("treated", ["--alias same", "--spec-type ngram-simple --spec-ngram-simple-size-n 2"])
def test_draws_through_a_chain_are_the_same_on_both_sides(tmp_path: Path, treated: str) -> None:
    """A guess is verified by a draw of its own number, so that an answer is the one without guesses.

    A decode of several rows rounds otherwise, and a draw may fall on the other side for that: then it is divergent,
    since a server does not tell its random numbers. A server beside itself rounds alike.
    """
    chain = ("temperature=0.8", "top_k=40", "top_p=0.9", "min_p=0.02", "repeat_penalty=1.1", "n_predict=24")
    stored, found = measured(tmp_path, treated, *chain)
    assert not void(found), void(found)
    said = {(int(seed), arm): stored.ledger["token"][stored.ledger["run"] == run].tolist() for run, seed, arm in zip(
        stored.runs["run"], stored.runs["seed"], stored.runs["arm"], strict=True)}  # fmt: skip
    first, second = sorted({seed for seed, arm in said if arm == "baseline"})[:2]
    assert said[first, "baseline"] != said[second, "baseline"], "another seed draws otherwise"
    assert said[first, "baseline"] == said[first, "again"]
    row = next(one for one in found.trials if one["prompt_class"] == "all")
    assert row["lossless"] in ("identical", "divergent") and (row["lossless"] == "identical" or "alias" not in treated)
    assert any("no difference is a near tie" in one["sentence"] for one in found.controls)


def test_two_requests_at_once(tmp_path: Path) -> None:
    stored, found = measured(tmp_path, "--alias same", "streams=2")
    assert not void(found)
    assert {row["scope"] for row in found.trials} == {"answer", "aggregate"}
    assert set(stored.served["stream"].tolist()) == {0, 1}


def starts_of_blocks(stored) -> set[int]:
    """How often its server had been started when a run of a block was answered; of fresh ones each has a number."""
    arms = dict(zip(stored.runs["run"].tolist(), stored.runs["arm"], strict=True))
    rows = zip(stored.served["run"].tolist(), stored.served["starts"].tolist(), strict=True)
    return {starts for run, starts in rows if arms[run] in ("baseline", "again", "treatment")}


def test_kept_servers_answer_everything_and_a_drafter_in_one_replays(tmp_path: Path) -> None:
    stored, found = measured(tmp_path / "plain", "--alias same", "engine.kept=true")
    assert not void(found) and starts_of_blocks(stored) == {1}
    row = next(one for one in found.trials if one["prompt_class"] == "all")
    assert row["lossless"] == "identical" and row["loaded"] == "servers that are kept"
    drafting = "--spec-type ngram-mod --spec-ngram-mod-n-match 4 --spec-ngram-mod-n-min 1"
    stored, found = measured(tmp_path / "drafting", drafting, "engine.kept=true", "n_predict=48")
    # Whether the replays are quicker, which voids the cell, is a matter of time, and no time is looked at here.
    assert set(void(found)) <= {"memory"} and starts_of_blocks(stored) == {1}
    first, *_, last = (stored.served["drafted"][stored.served["run"] == run][0]
                       for run in stored.runs["run"][stored.runs["arm"] == "carry"])  # fmt: skip
    assert last > max(first, 0), "a server that is kept drafts its own answer when the prompt comes again"
