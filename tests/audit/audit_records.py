"""Foreign records for the audit's tests, as text of the format that they come in, and a look at what is flagged."""

from __future__ import annotations

import json
from pathlib import Path

from bench.audit.audit import AuditReport, audit
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag

HEADER = "run,stream,position,token,round,source,t_ns\n"
Rows = list[tuple[int, int, int, int, int, str, int]]


def look(folder: Path, text: str, name: str = "record", **options: object) -> AuditReport:
    path = folder / name
    path.write_text(text)
    return audit(path, AuditOptions(**options))  # type: ignore[arg-type]


def flags(report: AuditReport, code: str) -> list[Flag]:
    return [item for item in report.flags if item.code == code]


def ledger(rows: Rows) -> str:
    return HEADER + "".join(",".join(map(str, row)) + "\n" for row in rows)


def clean(streams: int = 1, tokens: int = 9) -> Rows:
    """Streams that decode one token a round of 0.1 s, together."""
    rows: Rows = [(0, s, 0, 100 * s, -1, "prefill", s) for s in range(streams)]
    return rows + [
        (0, s, p, 100 * s + p, p - 1, "verified", p * 10**8 + s) for p in range(1, tokens) for s in range(streams)
    ]


BATCHED = {
    "n_kv_max": 4096,
    "n_batch": 2048,
    "n_ubatch": 512,
    "flash_attn": 0,
    "is_pp_shared": 0,
    "n_gpu_layers": 0,
    "n_threads": 2,
    "n_threads_batch": 2,
}


def batched(*rows: tuple[int, int, int, float, float], **wrong: float) -> str:
    """(pp, tg, pl, t_pp, t_tg) as llama-batched-bench prints them in JSONL."""
    lines = []
    for pp, tg, pl, t_pp, t_tg in rows:
        lines.append(
            json.dumps(
                {
                    **BATCHED,
                    "pp": pp,
                    "tg": tg,
                    "pl": pl,
                    "n_kv": pl * (pp + tg),
                    "t_pp": t_pp,
                    "speed_pp": pl * pp / t_pp,
                    "t_tg": t_tg,
                    "speed_tg": pl * tg / t_tg,
                    "t": t_pp + t_tg,
                    "speed": pl * (pp + tg) / (t_pp + t_tg),
                }
                | wrong
            )
        )
    return "\n".join(lines) + "\n"


def bench(samples: list[float], n_prompt: int = 0, n_gen: int = 128, **changed: object) -> dict[str, object]:
    rates = [(n_prompt + n_gen) / seconds for seconds in samples]
    return {
        "build_commit": "0c1e57098",
        "model_type": "llama 7B Q4_0",
        "model_size": 4_000_000_000,
        "n_threads": 8,
        "type_k": "f16",
        "n_prompt": n_prompt,
        "n_gen": n_gen,
        "n_depth": 0,
        "avg_ns": int(sum(samples) / len(samples) * 1e9),
        "avg_ts": sum(rates) / len(rates),
        "samples_ns": [int(seconds * 1e9) for seconds in samples],
        "samples_ts": rates,
    } | changed
