"""A scope knows the methods and what each of them has; its values are checked like its keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import UserError
from bench.judge.claims.scope import KEYS, OF_METHODS
from pti_loop.parameters import declared
from tests.judge.claims.claim_findings import claim_of, speed, verdict

RATIO = "{kind: records, test: ratio}"
SHARE = {"metric": "acceptance", "published": "0.40", "unit": "share", "rule": "{kind: records, test: value}"}
STEP = {"metric": "step_cost", "published": "1.2", "rule": "{kind: records, test: absolute}"}
ARITHMETIC = {"metric": "arithmetic", "rule": "{kind: projection, needs: something else}"}


@pytest.mark.parametrize(
    ("scope", "sentence"),
    [
        ("{method: lookupp}", "there is no method 'lookupp'; did you mean 'lookup'"),
        ("{method: [lookup, stager]}", "there is no method 'stager'; did you mean 'stagger'"),
        ("{method: stagger, ngram: 3}", "unknown scope key 'ngram', which method=stagger has not"),
        ("{method: stagger, draft: 3}", "key 'draft', which method=stagger has not; did you mean 'draws'"),
        ("{method: lookup, drafte: 3}", "did you mean 'draft'"),
        ("{method: packed, draft: 1}", "unknown scope key 'draft', which method=packed has not"),
        ("{method: packed, drafter: mtpp}", "drafter=mtpp is not a choice; did you mean 'mtp'"),
        ("{method: stagger, rebuild: stale}", "unknown scope.rebuild 'stale'; choose from: exact, mtp, none"),
        ("{method: stagger, rebuild: [none, exakt]}", "unknown scope.rebuild 'exakt'; did you mean 'exact'"),
        ("{method: lookup, draft: sabotage}", "scope.draft is 'sabotage'; write a whole number"),
        ("{method: lookup, draft: 1.5}", "scope.draft is '1.5'; write a whole number"),
        ("{method: lookup, draft: 0}", "scope.draft 0 is below 1"),
        ("{method: lookup, draft: {from: 7, to: 3}}", "from 7 to 3 is no range"),
        ("{method: lookup, draft: []}", "is an empty list"),
        ("{method: lookup, gate: 1}", "scope.gate is '1'; write true or false"),
        ("{method: lookup, gate: 'yes'}", "scope.gate is 'yes'; write true or false"),
        ("{method: jacobi, window: 1}", "scope.window 1 is below 2"),
        ("{method: lookup, streams: 4}", "method=lookup decodes one answer; leave streams out"),
        ("{method: stagger, streams: 9}", "method=stagger takes at most 8"),
        ("{method: stagger, streams: four}", "scope.streams is 'four'"),
        ("{method: stagger, flash_attn: maybe}", "unknown scope.flash_attn 'maybe'"),
        ("{method: stagger, kv_unified: 'on'}", "scope.kv_unified is 'on'; write true or false"),
        ("{method: stagger, n_predict: 1}", "scope.n_predict 1 is below 2"),
        ("{method: stagger, depth: 1}", "unknown scope key 'depth'"),
        ("{method: stagger, temperature: [0, warm]}", "scope.temperature is 'warm'"),
        ("{method: stagger, temperature: {from: 0.1}}", "needs both ends"),
        ("{method: stagger, temperature: {from: 0.1, until: 0.5}}", "unknown scope.temperature key 'until'"),
        ("everything", "write a mapping of what the number is about"),
    ],
)
def test_a_scope_that_no_row_can_have_is_an_error_on_load(tmp_path: Path, scope: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        claim_of(tmp_path, scope=scope)


@pytest.mark.parametrize(
    "scope",
    [
        "{method: lookup, draft: 15, ngram: 3, gate: true, adaptive: any, rollback: auto}",
        "{method: packed, drafter: mtp, draft: 1, draws: greedy, streams: [2, 4]}",
        "{method: draft, draft_model: smollm2-135m}",
        "{method: adapter, adapter: a.gguf, draws: [greedy, coupled]}",
        "{method: twin, twin: q4_0, draft: {from: 2, to: 4}}",
        "{method: lookup_mtp, head_draft: 2}",
        "{method: stagger, streams: any, temperature: any, kv_unified: true, type_k: q8_0, n_ctx: 4096}",
        "{method: any, temperature: {from: 0.1, to: 0.5}, prompt_class: prose, n_predict: 80, model: smollm2-135m}",
    ],
)
def test_every_parameter_of_a_method_is_a_key(tmp_path: Path, scope: str) -> None:
    assert claim_of(tmp_path, scope=scope)


@pytest.mark.parametrize("name", declared())
def test_a_method_that_is_declared_is_claimable_with_all_that_it_has(tmp_path: Path, name: str) -> None:
    """So a new method is, by its declaration alone."""
    values = {one.name: str(one.default).lower() for one in declared()[name].parameters if one.kind == "value"}
    scope = ", ".join([f"method: {name}", *(f"{key}: {value}" for key, value in values.items() if value)])
    assert claim_of(tmp_path, scope=f"{{{scope}}}").scope["method"] == name


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({**SHARE, "scope": "{method: lookup, position: 1}"}, "unknown scope key 'position'"),
        ({**SHARE, "scope": "{method: lookup, width: 4}"}, "unknown scope key 'width'"),
        ({**STEP, "scope": "{width: 4, method: stagger}"}, "unknown scope key 'method' of table 'step_cost'"),
        ({**STEP, "scope": "{width: 4, layout: rows}"}, "unknown scope.layout 'rows'"),
        ({**STEP, "scope": "{width: 0}"}, "below 1"),
        ({"metric": "kernel", "unit": "GB/s", "scope": "{kernel: f16}", "rule": "{kind: records, test: absolute}"},
         "unknown scope key 'kernel' of table 'kernels'"),
        ({**ARITHMETIC, "scope": "{method: lookupp}"}, "there is no method 'lookupp'"),
        ({**ARITHMETIC, "scope": "{streem: 4}"}, "unknown scope key 'streem'"),
        ({**ARITHMETIC, "scope": "{per: reader}"}, "unknown scope.per 'reader'"),
    ],
)  # fmt: skip
def test_a_key_belongs_to_a_table(tmp_path: Path, changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        claim_of(tmp_path, **changes)


def test_a_projection_may_be_about_a_loop_that_does_not_exist_here(tmp_path: Path) -> None:
    claim = claim_of(tmp_path, **ARITHMETIC, scope="{method: stagger, rebuild: stale}")
    assert verdict(claim)["verdict"] == "not_run"


def test_keys_select_rows(tmp_path: Path) -> None:
    rows = [speed(method="lookup", draft=draft, gate=gate, n_predict=n, kv_unified=unified, speedup=draft / 2,
                  ci_low=draft / 2 - 0.01, ci_high=draft / 2 + 0.01, cells=[f"{draft}{gate}{n}{unified}"])
            for draft in (3, 7, 15) for gate in (False, True) for n in (24, 80)
            for unified in (False, True)]  # fmt: skip

    def selected(scope: str) -> set[str]:
        return set(verdict(claim_of(tmp_path, scope=f"{{method: lookup, {scope}}}"), speedup=rows)["cells"])

    assert selected("draft: 15, gate: true, n_predict: 80, kv_unified: false") == {"15True80False"}
    assert len(selected("draft: {from: 4, to: 20}, gate: false")) == 4
    assert len(selected("draft: [3, 7], gate: any")) == 8
    assert len(selected("kv_unified: true")) == 12


def test_tables_of_methods_have_the_engine_s_settings() -> None:
    assert all({"n_ctx", "kv_unified", "type_k", "type_v", "flash_attn"} <= KEYS[table].keys() for table in OF_METHODS)
