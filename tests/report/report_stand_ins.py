"""Findings and claim rows made by hand, in the shape that the judge gives them. Every number here is invented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import SimpleNamespace
from typing import Any

from bench.judge.columns import Row
from bench.judge.tables import TABLES as DECLARED
from bench.judge.tables import columns_of, row_type
from pti_loop.parameters import declare, resolve

TABLES = tuple(name for name, table in DECLARED.items() if not table.optional)
NAN = float("nan")
SETTINGS = {"threads": 2, "n_predict": 32}
_NOTHING = {"float": NAN, "int": 0, "str": "", "bool": False}


def empty() -> SimpleNamespace:
    return SimpleNamespace(**{name: [] for name in TABLES})


def made(table: str, *parts: Mapping[str, Any], **known: Any) -> Any:
    """A row of a table from what is known; what is no column of it is a condition.

    Needed columns that nobody gives are filled: a figure is missing, a word empty.
    """
    given = {key: value for part in (*parts, known) for key, value in part.items()}
    kind: Any = row_type(table)
    needed = [one for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING]
    filled = {one.name: _NOTHING.get(str(one.type).split(" ")[0]) for one in needed}
    own = {name: value for name, value in given.items() if name in columns_of(table)}
    beyond = {name: value for name, value in given.items() if name not in columns_of(table)}
    return kind(**filled | own | {"conditions": {**given.get("conditions", {}), **beyond}})


def origin(cell: str, machine: str = "laptop") -> dict[str, Any]:
    """What every row has, and settings of the cell."""
    about = {"machine": machine, "build": "0.3.36-abc-cpu", "cells": [cell]}
    return about | {"model": "smollm2-135m", "quantization": "Q8_0", "conditions": SETTINGS}


def subject(method: str, streams: int, temperature: float = 0.0, **more: Any) -> dict[str, Any]:
    """What every row about an arm has."""
    parameters = resolve(method, {key: value for key, value in more.items() if key != "conditions"}) if method else {}
    told = declare(method, parameters, streams) if method else None
    about = {"method": method, "streams": streams, "temperature": temperature, "short": told.short if told else ""}
    return about | {"parameters": parameters, **parameters}


def speedup(cell: str, method: str, streams: int, value: float, machine: str = "laptop", **more: Any) -> Row:
    row = {
        "scope": "answer", "prompt_class": "all", "tok_s": 40 * value, "baseline_tok_s": 40.0, "speedup": value,
        "ci_low": value * 0.9, "ci_high": value * 1.1, "counted_tok_s": 40 * value, "counted_speedup": value,
        "aggregate_tok_s": 40 * value, "lossless": "identical", "identical_share": 1.0, "tokens_per_round": 1.0,
        "relative_round_cost": 1 / value, "product_speedup": value, "host_share": 0.012, "min_visible_effect": 0.03,
        "n_blocks": 24, "n_prompts": 24, "bound_tok_s": 90.0,
    }  # fmt: skip
    own = {key: more.pop(key) for key in [*more] if key not in columns_of("speedup")}
    return made("speedup", origin(cell, machine), subject(method, streams, **own), row, more)


def cell_row(cell: str, machine: str = "laptop", state: str = "done", method: str = "stagger", **more: Any) -> Row:
    about = {"kind": "contrast", "time_utc": "2026-06-01T10:00:00Z", "state": state, "seconds": 9.5, "cell": cell}
    return made("cells", origin(cell, machine), subject(method, 4), about, SETTINGS, more)


def decomposition(cell: str, arm: str, machine: str = "laptop", method: str = "stagger", **more: Any) -> Row:
    parts = {"draft_ms": 0.1, "decode_ms": 20.0, "sample_ms": 0.5, "rollback_ms": 0.0, "host_ms": 0.2, "total_ms": 20.8}
    about = {"arm": arm, "cell": cell}
    return made("decomposition", origin(cell, machine), subject(method, 4), about, parts, more)


def prediction(cell: str, arm: str, machine: str, predicted: float, measured: float, **more: Any) -> Row:
    ratio = measured / predicted
    row = {
        "arm": arm, "prompt_class": "all", "scope": "answer", "predicted": predicted, "measured": measured,
        "ratio": ratio, "ratio_low": ratio - 0.1, "ratio_high": ratio + 0.1, "abs_error": abs(ratio - 1),
        "curve_only": predicted * 1.25, "alternation": 0.8, "best_draft": 3, "best_speedup": 0.6, "best_low": 0.5,
        "best_high": 0.7, "best_kind": "projected",
    }  # fmt: skip
    return made("predictions", origin(cell, machine), subject("stagger", 4), row, more)


def profile(cell: str, machine: str, found: SimpleNamespace) -> None:
    """Rows that a profile cell and the acceptance sweep give."""
    about = origin(cell, machine)
    for width, cost in ((1, 1.0), (2, 1.3), (4, 2.0), (8, 3.4)):
        price = {"layout": "sequences", "step_ms": 20 * cost, "relative_cost": cost, "ci_low": cost, "ci_high": cost}
        rate = {"width": width, "predicted_tok_s_all_accepted": 50 * width / cost}
        found.step_cost.append(made("step_cost", about, price, rate))
    for temperature, rate in ((0.0, 1.0), (0.6, 0.72), (1.0, 0.55)):
        for depth in (0, 1):
            share = {"tested": 328, "accepted": round(328 * rate), "rate": rate, "ci_low": rate - 0.05, "ci_high": rate}
            expected = {"collision_mean": NAN if temperature == 0 else rate, "depth": depth}
            found.acceptance.append(made("acceptance", about, subject("stagger", 2, temperature), share, expected))
    sizes = {"streams": 2, "kv_bytes": 2**24, "state_bytes": 0, "measured_bytes": 2**24, "per_stream_bytes": 2**23}
    found.memory.append(made("memory", about, sizes, source="profile"))
    found.bandwidth.append(made("bandwidth", about, read_gb_s=21.0))
    peer = {"tool": "llama-bench", "width": 1, "tok_s": 40.1, "ours_tok_s": 39.9, "ratio": 0.995}
    found.peers.append(made("peers", about, peer, ci_low=0.99, ci_high=1.0, pairs=5))
    found.cells.append(cell_row(cell, machine, method="", kind="profile", streams=1))


def full(machines: tuple[str, ...] = ("laptop",)) -> SimpleNamespace:
    """Every table filled, with a void cell and a failed one on each machine."""
    found = empty()
    for place, machine in enumerate(machines):
        ids = [f"{place}{digit}" * 6 for digit in "abcdef"]
        found.speedup += [
            speedup(ids[0], "stagger", 4, 0.51, machine, counted_tok_s=77.7, counted_speedup=1.94),
            speedup(ids[0], "stagger", 4, 0.47, machine, prompt_class="prose"),
            speedup(ids[1], "packed", 4, 1.93, machine, scope="aggregate"),
            speedup(ids[2], "jacobi", 4, 7.77, machine, void=True, void_reason="again: A/A is 1.2, outside 1.00"),
        ]
        found.decomposition += [decomposition(ids[0], arm, machine) for arm in ("baseline", "treatment", "again")]
        found.predictions += [
            prediction(ids[0], "sabotage", machine, 0.2, 0.21),
            prediction(ids[0], "treatment", machine, 0.5, 0.51),
            prediction(ids[0], "treatment", machine, 0.4, 0.44, prompt_class="prose"),
            prediction(ids[2], "treatment", machine, 3.33, 7.77, void=True),
        ]
        verdict = {"ok": True, "severity": "ok", "value": 1.001, "ci_low": 0.99, "ci_high": 1.01}
        found.controls += [
            made("controls", origin(ids[0], machine), verdict, cell=ids[0], control="again", sentence="A/A is 1.001"),
            made("controls", origin(ids[2], machine), verdict, cell=ids[2], control="again", ok=False, severity="void",
                 sentence="A/A is 1.2, outside 1.00"),
        ]  # fmt: skip
        points = {"t_s": [0.1 * step for step in range(20)], "counted": [4 * step for step in range(20)]}
        found.timeline.append(made("timeline", origin(ids[0], machine), points, cell=ids[0], distinct=[*range(20)]))
        found.cells += [cell_row(ids[at], machine) for at in range(2)]
        found.cells.append(cell_row(ids[2], machine, void=True, void_reason="again: A/A is 1.2, outside 1.00"))
        found.cells.append(cell_row(ids[3], machine, "failed", reason="killed by signal 9 | no table\nin sight"))
        profile(ids[4], machine, found)
    return found


def claim(name: str, verdict: str, metric: str, scope: Any, published: Any, **more: Any) -> dict[str, Any]:
    row = {
        "claim_id": name, "verdict": verdict, "metric": metric, "scope": scope, "published": published, "unit": "x",
        "measured": None, "ci_low": NAN, "ci_high": None, "evidence": "measured", "reason": "Because it was measured.",
        "machine": "any", "build": "any", "cells": [], "author_status": "standing",
        "source": "twin README, 2026-06-08, https://example.org/readme",
    }  # fmt: skip
    return row | more


def claims() -> list[dict[str, Any]]:
    here = {"machine": "laptop", "build": "0.3.36-abc-cpu", "cells": ["0a0a0a0a0a0a"]}
    later = {"source": "twin PLAN, 2026-06-09"}
    return [
        claim("twin.future", "not_run", "speedup", "method=stagger, streams=8", "2.5 to 3.0"),
        claim("twin.four", "refuted", "speedup", "method=stagger, streams=4, per=answer, temperature=0", 1.96,
              measured=0.51, ci_low=0.46, ci_high=0.56, counted=77.7, distinct=20.4, **here),
        claim("twin.packed", "reproduced", "aggregate", {"method": "packed", "streams": 4}, 1.95,
              measured=1.93, **here),
        claim("twin.mi50", "not_comparable", "rate", "method=stagger, streams=4", 38.1, unit="tok/s"),
        *(claim(f"twin.cost.{w}", "inconclusive", "step_cost", f"width={w}", cost)
          for w, cost in ((2, 1.27), (4, 2.04))),
        *(claim(f"twin.batch.{w}", "inconclusive", "step_cost", f"width={w}", cost, **later)
          for w, cost in ((2, 1.2), (8, 3.11))),
        claim("twin.accept", "reproduced", "acceptance", "temperature=0.6", 75, unit="%", measured=72),
        claim("twin.range", "inconclusive", "acceptance", "temperature=0.6..0.7", "0.5 to 0.65", unit="share",
              evidence="stated"),
    ]  # fmt: skip
