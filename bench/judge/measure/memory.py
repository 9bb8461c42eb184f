"""Memory by number of streams: the attention cache and recurrent state that were measured, beside what was computed.

It knows no model's shape: the records hold the bytes of a token and of a sequence, which
`pti_loop.gguf.model_memory` works out from metadata, and what the engine allocated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bench.judge.tables import CONTRAST, PROFILE
from bench.judge.tables.machine import Memory

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.records.cells import StoredCell


def memory_rows(case: Case) -> list[Memory]:
    """Memory by number of streams: from a profile's series, or from the contexts of a contrast."""
    facts = case.cell.facts
    rows = [_row(case, PROFILE, known) for known in facts.get("memory_by_streams") or []]
    known = facts.get("memory") or {}
    plain = _grown(known.get("baseline") or {})
    for arm in ("baseline", "treatment"):
        if measured := known.get(arm):
            about = {"arm": arm, "method": case.arm.method, "drafts": arm != "baseline" and bool(facts.get("drafter"))}
            extra = _grown(measured) - plain if arm != "baseline" else math.nan
            rows.append(_row(case, CONTRAST, measured | _contrast_row(case.cell, arm, measured), **about,
                             extra_bytes=extra))  # fmt: skip
    return rows


def preferred(found: Iterable[list[Memory]]) -> list[Memory]:
    """The rows of all cells. A contrast that nobody looked around is told only where no profile measured."""
    rows = [row for these in found for row in these]
    return [row for row in rows if row.source == PROFILE or not math.isnan(row.held_bytes)] or rows


def _row(case: Case, source: str, known: Mapping[str, Any], **more: Any) -> Memory:
    """A row from what the records know, whatever else they hold."""
    return Memory(
        **case.of_model, source=source, held_bytes=_grown(known), **more,
        weight_bytes=float((case.cell.facts.get("model") or {}).get("tensor_bytes") or math.nan),
        **{name: value for name, value in known.items() if name in Memory.columns},
        kv_ratio=_quotient(known.get("kv_bytes"), known.get("computed_kv_bytes")),
        state_ratio=_quotient(known.get("state_bytes"), known.get("computed_state_bytes")),
    )  # fmt: skip


def _grown(known: Mapping[str, Any]) -> float:
    """What process and cards held more behind than before; nan where nobody looked."""
    pairs = [(known.get(name), known.get(f"{name}_before")) for name in ("process_bytes", "card_bytes")]
    grown = [after - before for after, before in pairs if after is not None and before is not None]
    return float(sum(grown)) if grown else math.nan


def _contrast_row(cell: StoredCell, arm: str, measured: Mapping[str, Any]) -> dict[str, Any]:
    engine = (cell.facts.get("engine") or {}).get(arm) or {}
    model = cell.facts.get("model") or {}
    streams = int(engine.get("n_seq_max") or 1)
    cells_held = float(engine.get("n_ctx_seq") or float(engine.get("n_ctx") or 0) / streams) * streams
    kv, state = float(measured.get("kv_bytes") or 0), float(measured.get("state_bytes") or 0)
    per_token, per_sequence = model.get("kv_bytes_per_token"), model.get("state_bytes_per_sequence")
    return {
        "streams": streams,
        "kv_bytes": kv,
        "state_bytes": state,
        "computed_kv_bytes": float(per_token) * cells_held if per_token is not None and cells_held else float("nan"),
        "computed_state_bytes": float(per_sequence) * streams if per_sequence is not None else float("nan"),
        "measured_bytes": kv + state,
        "compute_bytes": measured.get("compute_bytes"),
        "per_stream_bytes": (kv + state) / streams,
    }


def _quotient(measured: Any, computed: Any) -> float:
    if not computed or measured is None:
        return float("nan")
    return float(measured) / float(computed)
