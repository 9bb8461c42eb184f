"""Memory by number of streams: the attention cache and recurrent state that were measured, beside what was computed.

It knows no model's shape: the records hold the bytes of a token and of a sequence, which
`pti_loop.gguf.model_memory` works out from metadata, and what the engine allocated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.judge.claims.synthetic import about_model
from bench.judge.findings import Row, origin, settings

if TYPE_CHECKING:
    from bench.records.cells import StoredCell


def memory_rows(cell: StoredCell) -> list[Row]:
    """Memory by number of streams: from a profile's series, or from the contexts of a contrast."""
    common = {**origin(cell), **settings(cell), **about_model(cell)}
    series = cell.facts.get("memory_by_streams") or []
    rows = [{**common, "source": "profile", "arm": "", **row} for row in series]
    for arm in ("baseline", "treatment"):
        measured = (cell.facts.get("memory") or {}).get(arm)
        if measured:
            rows.append({**common, "source": "contrast", "arm": arm, **_contrast_row(cell, arm, measured)})
    for row in rows:
        row["kv_ratio"] = _quotient(row.get("kv_bytes"), row.get("computed_kv_bytes"))
        row["state_ratio"] = _quotient(row.get("state_bytes"), row.get("computed_state_bytes"))
    return rows


def _contrast_row(cell: StoredCell, arm: str, measured: Mapping[str, Any]) -> Row:
    engine = (cell.facts.get("engine") or {}).get(arm) or {}
    model = cell.facts.get("model") or {}
    streams = int(engine.get("n_seq_max") or 1)
    cells_held = float(engine.get("n_ctx_seq") or float(engine.get("n_ctx") or 0) / streams) * streams
    kv, state = float(measured.get("kv_bytes") or 0), float(measured.get("state_bytes") or 0)
    per_token, per_sequence = model.get("kv_bytes_per_token"), model.get("state_bytes_per_sequence")
    known = per_token is not None and cells_held
    return {
        "streams": streams,
        "kv_bytes": kv,
        "state_bytes": state,
        "computed_kv_bytes": float(per_token) * cells_held if known else float("nan"),
        "computed_state_bytes": float(per_sequence) * streams if per_sequence is not None else float("nan"),
        "measured_bytes": kv + state,
        "compute_bytes": measured.get("compute_bytes"),
        "per_stream_bytes": (kv + state) / streams,
    }


def _quotient(measured: Any, computed: Any) -> float:
    if not computed or measured is None:
        return float("nan")
    return float(measured) / float(computed)
