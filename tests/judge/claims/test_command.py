"""The command that measures a claim: it carries the whole scope, the planner takes it, and it reaches the claim."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bench.judge.claims.claim import Claim
from bench.judge.claims.columns import KERNEL_TABLES
from bench.judge.claims.command import KERNELS, SWEEP, needed
from bench.judge.claims.names import Names
from bench.judge.claims.rows import DEFAULTS_OF, matching
from bench.judge.claims.scope import KEYS, OF_METHODS
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from bench.plan.compose import compose_points
from bench.plan.settings import Config
from bench.run import step_times
from pti_loop.generate.options import asked
from pti_loop.parameters import declare, declared
from tests.judge.claims.claim_findings import FACTS, ROOT, claim_of, verdict

COMMAND = re.compile(r"`((?:python -m|make) [^`]+)`")
CHECK, GENERATE = "make kernels-check", "python -m pti_loop generate"
SHEETS = {path.stem: load_sheet(path) for path in sorted((ROOT / "configs" / "claims").glob("*.yaml"))}
NOTHING = judge_claims([claim for sheet in SHEETS.values() for claim in sheet], Findings(), FACTS)
PROFILE = ("step_cost", "memory", "bandwidth")


@cache
def planned(command: str) -> tuple[Config, ...]:
    """The cells' configurations that a sweep's command plans."""
    return tuple(compose_points(command.removeprefix(SWEEP).split()))


@pytest.mark.parametrize(
    ("scope", "command"),
    [
        ("{method: packed, drafter: mtp, draft: 1, streams: 4, temperature: 0}",
         "method=packed method.drafter=mtp method.draft=1 streams=4 temperature=0"),
        ("{method: lookup, draft: 15, gate: true, adaptive: true}",
         "method=lookup method.draft=15 method.gate=true method.adaptive=true"),
        ("{method: twin, twin: q4_0, draft: 2}", "method=twin method.twin=q4_0 method.draft=2"),
        ("{method: lookup, ngram: [2, 3], prompt_class: prose}",
         "method=lookup method.ngram=2,3 measure.classes=[prose]"),
        ("{method: lookup, prompt_class: all}", "method=lookup"),
        ("{method: stagger, streams: {from: 2, to: 4}, temperature: any}",
         "method=stagger streams=2,3,4 temperature=0,0.3,0.7,1"),
        ("{method: stagger, rebuild: [none, exact], kv_unified: true, n_predict: 80}",
         "method=stagger method.rebuild=none,exact engine.kv_unified=true n_predict=80"),
        ("{method: mtp, streams: 1, temperature: {from: 0.5, to: 0.9}}", "method=mtp temperature=0.6,0.8"),
        ("{method: jacobi, window: 8, model: pti-tiny}", "method=jacobi method.window=8 model=pti-tiny"),
        ("{method: stagger, streams: any, draws: any}", "method=stagger streams=2,3,4"),
    ],
)  # fmt: skip
def test_every_parameter_of_the_scope_is_an_override(tmp_path: Path, scope: str, command: str) -> None:
    model = "" if "model:" in scope else "model: smollm2-135m, "
    row = verdict(claim_of(tmp_path, scope=scope, conditions=f"{{machine: laptop, {model}quantization: q8_0}}"))
    assert row["verdict"] == "not_run"
    assert f"`{SWEEP} {command}`" in row["reason"]
    assert planned(f"{SWEEP} {command}")


def test_conditions_that_a_sweep_can_set_are_overrides_and_the_others_are_told(tmp_path: Path) -> None:
    conditions = (
        "{machine: mi50, model: qwen3.6-27b, quantization: q5_k_m, n_predict: 80, type_k: q8_0, flash_attn: off}"
    )
    row = verdict(claim_of(tmp_path, scope="{method: mtp, temperature: 0}", conditions=conditions))
    command = f"`{SWEEP} method=mtp temperature=0 n_predict=80 engine.type_k=q8_0 engine.flash_attn=off`"
    assert f"{command} on mi50 with qwen3.6-27b q5_k_m" in row["reason"]


@pytest.mark.parametrize(
    ("scope", "metric", "command"),
    [
        ("{width: 4}", "step_cost", f"{SWEEP} profile=true"),
        ("{width: 24}", "step_cost", f"{SWEEP} profile=true measure.step_widths=24"),
        ("{width: [5, 7], layout: tokens}", "step_cost", f"{SWEEP} profile=true measure.step_widths=5,7"),
        ("{width: 4, n_past: 1024}", "step_cost", f"{SWEEP} profile=true measure.step_depth=1024"),
        ("{variant: flat_tiled, format: Q8_0, streams: 4, rows: 64, cols: 32}", "kernel",
         f"{KERNELS} --streams 4 --variants flat_tiled --formats Q8_0 --shapes 64x32"),
    ],
)  # fmt: skip
def test_profiles_and_kernels(tmp_path: Path, scope: str, metric: str, command: str) -> None:
    unit = {"kernel": "GB/s"}.get(metric, "x")
    claim = claim_of(tmp_path, metric=metric, unit=unit, scope=scope, rule="{kind: records, test: absolute}")
    assert f"`{command}` on laptop" in verdict(claim)["reason"]


def test_no_command_has_a_parameter_that_its_method_has_not() -> None:
    for row in NOTHING:
        for command in COMMAND.findall(row["reason"]):
            name = re.search(r" method=(\w+)( |$)", command)
            given = set(re.findall(r" method\.(\w+)=", command))
            if name:
                known = {one.name for one in declared()[name[1]].parameters}
                for drafter in re.findall(r"method.drafter=(\w+)", command):
                    known |= {one.name for one in declared()[drafter].parameters} if drafter != "none" else set()
                assert given <= known, command


@pytest.mark.parametrize(
    "row", [row for row in NOTHING if row["verdict"] == "not_run"], ids=lambda row: str(row["claim_id"])
)
def test_every_not_run_names_a_command_that_the_planner_takes(row: dict[str, Any]) -> None:
    commands = COMMAND.findall(row["reason"])
    assert commands, row["reason"]
    for command in commands:
        if command.startswith(SWEEP):
            assert planned(command)
        else:
            assert command.startswith((KERNELS, CHECK, GENERATE, "python -m kernels.static"))
            if command.startswith(GENERATE):
                assert asked(command.removeprefix(GENERATE).split()).streams == 4


@pytest.mark.parametrize("command", sorted({command for row in NOTHING for command in COMMAND.findall(row["reason"])
                                            if not command.startswith(SWEEP)}))  # fmt: skip
def test_kernel_commands_name_what_there_is(command: str) -> None:
    from kernels import variants
    from kernels.bench import parse, shapes_of

    for start in (KERNELS, CHECK):
        if not command.startswith(start):
            continue
        words = shlex.split(command.removeprefix(start))
        given = parse(words if start == KERNELS else " ".join(words).removeprefix("ARGS=").split())
        assert set(given.variants.split(",")) <= set(variants.BY_NAME)
        assert set(given.formats.split(",")) <= {"Q8_0", "Q6_K", "Q5_K", "SSQ", "F16", "F32"}
        assert shapes_of(given.shapes) and all(int(one) >= 1 for one in given.streams.split(","))


def unreachable(claims: list[Claim]) -> list[str]:
    """Claims that no planned cell, formula or fact can reach: those whose own command makes no row of their scope."""
    found = []
    for claim in claims:
        if claim.rule.kind == "projection":
            reached = bool(claim.rule.command)
        elif claim.rule.kind != "records" or verdict(claim)["verdict"] == "not_comparable":
            reached = True  # recomputed, or published without what it would take
        else:
            table = rows_of(claim, needed(claim).split("`")[1])
            tables = Findings(**{claim.table: table})
            reached = bool(matching(claim, tables, Names()))
        if not reached:
            found.append(claim.id)
    return found


def rows_of(claim: Claim, command: str) -> list[dict[str, Any]]:
    """Rows that the command's cells give, as far as the plan decides them."""
    if claim.table in KERNEL_TABLES:
        fixed = {"streams": 4, "rows": 17408, "cols": 5120} | {"cache": "cold"} | DEFAULTS_OF[claim.table]
        allowed = {key: claim.scope[key] for key in KEYS[claim.table] if key in claim.scope and key != "machine"}
        return [{**fixed, **allowed}]
    rows: list[dict[str, Any]] = []
    for config in planned(command):
        engine = {"model": config.model.name, "machine": config.machine, "n_ctx": config.engine.n_ctx,
                  "kv_unified": config.engine.kv_unified, "flash_attn": config.engine.flash_attn,
                  "type_k": config.engine.type_k, "type_v": config.engine.type_v}  # fmt: skip
        if claim.table == "memory" and "method" in claim.scope:
            rows += [{**engine, "method": config.method.name, "arm": arm} for arm in ("baseline", "treatment")]
        elif claim.table in PROFILE:
            last = config.measure.step_widths
            for layout, usual in (("sequences", step_times._SEQUENCES), ("tokens", step_times._TOKENS)):
                rows += [{**engine, "layout": layout, "width": width, "n_past": config.measure.step_depth}
                         for width in {last, *(width for width in usual if width < last)}]  # fmt: skip
            rows += [{**engine, "streams": streams} for streams in (1, 2, 3, 4, 8)]
        else:
            rows += _contrast_rows(claim, config, engine)
    return rows


def _contrast_rows(claim: Claim, config: Config, engine: dict[str, Any]) -> list[dict[str, Any]]:
    own = declare(config.method.name, config.method.parameters, config.streams)
    classes = {item["class"] for item in config.prompts.items}
    wanted = config.measure.classes or sorted(classes)
    assert set(wanted) <= classes, f"{claim.id}: no prompts of {wanted}"
    row = {**engine, "method": config.method.name, **config.method.parameters, "n_predict": config.n_predict,
           "streams": 1 if own.answers == "one" else config.streams, "temperature": config.temperature}  # fmt: skip
    if claim.table == "domain":
        known = {"domain": config.prompts.domain, "window": 0}
        signals = ("acceptance", "collision", "excess")
        return [row | known | {"signal": signal} for signal in signals if config.prompts.domain]
    if claim.table == "acceptance":
        together = wanted[0] if len(wanted) == 1 else "all"
        return [row | {"prompt_class": together, "depth": depth} for depth in range(5) if own.guesses]
    scopes = ("answer", "aggregate") if own.answers == "independent" else ("answer",)
    return [row | {"prompt_class": name, "scope": scope} for name in ("all", *wanted) for scope in scopes]


@pytest.mark.parametrize("name", SHEETS)
def test_no_claim_of_a_shipped_sheet_is_out_of_reach(name: str) -> None:
    assert unreachable(SHEETS[name]) == []


def test_a_claim_out_of_reach_is_found(tmp_path: Path) -> None:
    """One about a class of which the planned cell has no prompts, or without a command."""
    adversarial = claim_of(tmp_path, scope="{method: lookup, prompt_class: adversarial}")
    with pytest.raises(AssertionError, match="no prompts of"):
        unreachable([adversarial])
    assert unreachable([claim_of(tmp_path, rule="{kind: projection, needs: a miracle}")]) == ["a.claim"]
    other = claim_of(tmp_path, rule="{kind: records, test: ratio, command: python -m bench sweep method=jacobi}")
    assert unreachable([other]) == ["a.claim"]


def test_tables_of_methods_are_told_apart() -> None:
    assert set(OF_METHODS) | set(PROFILE) | set(KERNEL_TABLES) == set(KEYS)
