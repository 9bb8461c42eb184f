"""Real small cells under the name of the card that the sheet is about: no entry is judged by a row that is not its own.

The reference's records of a small model are given the machine, the model and the length that PTI's figures were taken
with. Whatever an entry then says, it may only say of rows that have all that the entry names.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from bench.judge.claims.conditions import differing
from bench.judge.claims.facts import load_facts
from bench.judge.claims.mechanism import mechanism
from bench.judge.claims.names import load_names
from bench.judge.claims.rows import column_of, figure, in_claim_unit, matching, value_of
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.columns import changed
from bench.judge.findings import Findings
from bench.plan.config import CONFIGS
from bench.stored import judge_stored
from tests.conftest import REPOSITORY

SHEET = load_sheet(CONFIGS / "claims" / "pti.yaml")
FACTS = load_facts(CONFIGS / "facts")
NAMES = load_names(CONFIGS / "facts")
JUDGED = ("reproduced", "misstated", "refuted", "inconclusive")
OF_THE_CARD = [claim for claim in SHEET if "mi50" in (claim.scope.get("machine"), claim.conditions.get("machine"))]
CARD = {"machine": "mi50", "model": "Qwen3.6-27B-UD-Q6_K_XL", "quantization": "ud-q6_k_xl"}
CELLS = 50
WORDS = {r"unified": "kv_unified", r"Q8 KV|q8_0 cache": "type_k", r"flash attention": "flash_attn"}
"""What a sentence may say of a setting that a cell has at its usual value otherwise."""


@pytest.fixture(scope="module")
def relabelled() -> Findings:
    folders = sorted(path.parent for path in (REPOSITORY / "results/reference/amd-epyc-2c").glob("*/status.json"))
    findings = judge_stored(folders[:CELLS], processes=1)
    for name, rows in findings.tables().items():
        rows[:] = [_relabelled(row) for row in rows]
        assert name
    return findings


def _relabelled(row: Any) -> Any:
    new: dict[str, Any] = {name: value for name, value in CARD.items() if name in row.columns}
    if "conditions" in row.columns and row.conditions:
        usual = {"n_predict": 80, "flash_attn": "on", "n_ctx": 4096, "synthetic": False}
        new["conditions"] = {**row.conditions, **{key: value for key, value in usual.items() if key in row.conditions}}
    return changed(row, **new)


@pytest.fixture(scope="module")
def verdicts(relabelled) -> dict[str, Any]:
    return {row.claim_id: row for row in judge_claims(SHEET, relabelled, FACTS)}


def test_the_cells_say_something_of_the_card(verdicts):
    """Else the others would hold of nothing."""
    assert len(OF_THE_CARD) > 50
    told = [claim.id for claim in OF_THE_CARD if claim.rule.kind == "records" and verdicts[claim.id].verdict in JUDGED]
    assert told


@pytest.mark.parametrize("claim", OF_THE_CARD, ids=lambda claim: claim.id)
def test_an_entry_about_the_card_is_judged_by_its_own_rows_alone(claim, relabelled, verdicts):
    if claim.rule.kind != "records":
        return
    found = verdicts[claim.id]
    rows = [row for row in matching(claim, relabelled, NAMES) if figure(row, claim.column) is not None]
    if found.verdict not in JUDGED or (found.verdict == "inconclusive" and not rows):
        return  # that a cell lacks the figure is no verdict on it
    assert rows, "a verdict without a row"
    for row in rows:
        for key, wanted in claim.scope.items():
            if key not in ("per", "machine", "model", "quantization") and isinstance(wanted, (int, float, str, bool)):
                assert wanted == "any" or value_of(row, key) == wanted, f"{key} is {value_of(row, key)}"
    if not mechanism(claim).anywhere:
        assert any(not differing(claim, row, NAMES) for row in rows)
    if found.verdict in ("reproduced", "refuted") and claim.rule.test == "absolute":
        told = [in_claim_unit(claim, figure(row, claim.column) or 0.0) for row in rows]
        assert any(f"{value:.3g}"[:3] in str(found.measured) or value == pytest.approx(found.measured, rel=0.01)
                   for value in told), f"{found.measured} is none of its rows' {column_of(claim).kind}"  # fmt: skip


@pytest.mark.parametrize("claim", [one for one in SHEET if one.rule.kind == "records"], ids=lambda claim: claim.id)
def test_a_setting_that_the_sentence_names_is_one_that_its_rows_must_have(claim):
    """An entry about a unified cache was judged by cells without one, since nothing but its sentence said so."""
    named = {**claim.scope, **claim.conditions}
    for words, key in WORDS.items():
        if re.search(words, claim.says):
            assert key in named, f"'{claim.says}' does not name {key}"


@pytest.mark.parametrize(("setting", "usual"), [({"kv_unified": True}, False), ({"depth": 4096}, 0)])
def test_cells_with_another_cache_or_behind_other_text_are_nobody_s_who_does_not_name_them(relabelled, setting, usual):
    """They would be pooled with the usual ones, or stand in for them where these were not run."""
    (key,) = setting
    own: Any = {name: [changed(row, conditions={**row.conditions, **setting}) for row in rows
                       if row.get(key) == usual and "conditions" in row.columns]
                for name, rows in relabelled.tables().items() if name in ("speedup", "step_cost")}  # fmt: skip
    assert own["speedup"]
    moved = Findings(**own)
    for claim in OF_THE_CARD:
        if claim.rule.kind == "records" and claim.table in own and key not in {**claim.scope, **claim.conditions}:
            assert not matching(claim, moved, NAMES)
