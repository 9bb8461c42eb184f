"""What the columns of somebody's own table mean, from their names: a list of spellings, then patterns for rates.

It reads no cell. A name it does not know has no meaning here; the table's reader keeps such a column as a setting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ALIASES: dict[str, tuple[str, ...]] = {
    "step": ("step", "round", "iteration", "iter"),
    "rounds": ("rounds", "steps", "n_steps", "n_rounds", "cycles", "n_cycles", "decoding_steps", "num_drafts"),
    "arm": (
        "arm",
        "method",
        "variant",
        "system",
        "config",
        "configuration",
        "setup",
        "mode",
        "name",
        "stage",
        "technique",
        "spec",
        "speculative",
        "speculation",
        "drafter",
        "decoder",
    ),
    "run": ("run", "repeat", "rep", "trial"),
    "prompt": ("prompt", "prompt_id", "prompt_name", "task", "question", "question_id", "case", "workload"),
    "category": ("category", "class", "prompt_class", "domain", "kind"),
    "order": ("order",),
    "phase": ("phase",),
    "temperature": ("temperature", "temp", "t=", "sampling_temperature"),
    "clock_mhz": ("clock_mhz", "mhz"),
    "tokens": ("tokens", "token", "token_ids", "ids"),
    "positions": ("positions", "position", "pos"),
    "stream": ("stream", "seq", "sequence", "seq_id", "slot", "lane", "stream_id"),
    "streams": (
        "streams",
        "n_streams",
        "num_streams",
        "concurrency",
        "conc",
        "clients",
        "parallel",
        "np",
        "n_parallel",
        "seqs",
        "n_seqs",
        "num_seqs",
        "sequences",
        "users",
        "lanes",
        "slots",
        "answers",
        "requests_in_parallel",
        "pl",
        "n_pl",
    ),
    "emitted": (
        "emitted",
        "n_emitted",
        "n_tokens",
        "count",
        "generated",
        "predicted_n",
        "n_predicted",
        "pred",
        "new_tokens",
        "completion_tokens",
        "output_tokens",
        "generated_tokens",
        "tokens_generated",
        "gen_tokens",
        "n_gen",
        "eval_count",
        "decode_tokens",
        "out_tokens",
    ),
    "seconds": (
        "seconds",
        "time",
        "s",
        "sec",
        "time_s",
        "duration",
        "duration_s",
        "decode_s",
        "gen_s",
        "decode_time",
        "decode_seconds",
        "generation_time",
        "eval_duration",
        "decode_time_s",
    ),
    "ms": (
        "ms",
        "time_ms",
        "duration_ms",
        "milliseconds",
        "predicted_ms",
        "decode_ms",
        "eval_ms",
        "gen_ms",
        "latency_ms",
    ),
    "us": ("us", "time_us", "duration_us", "microseconds"),
    "ns": ("ns", "time_ns", "duration_ns", "nanoseconds"),
    "t_s": ("t_s", "t", "timestamp", "timestamp_s"),
    "t_ms": ("t_ms", "timestamp_ms"),
    "t_us": ("t_us", "timestamp_us"),
    "t_ns": ("t_ns", "timestamp_ns"),
    "total_s": (
        "total_s",
        "total_time",
        "total_time_s",
        "wall_s",
        "wall",
        "wall_time",
        "e2e_s",
        "e2e",
        "latency_s",
        "lat_s",
        "latency",
        "total_seconds",
        "elapsed",
        "elapsed_s",
        "wall_clock_s",
    ),
    "total_ms": ("total_ms", "e2e_ms", "wall_ms", "e2e_latency_ms"),
    "prefill_s": ("prefill_s", "prompt_s", "ttft_s", "ttft", "prefill_time", "prefill_seconds"),
    "prefill_ms": ("prefill_ms", "prompt_ms", "ttft_ms"),
    "tpot_ms": ("tpot", "tpot_ms", "mean_tpot_ms", "ms_per_token", "ms/token", "itl_ms", "ms/tok"),
    "width": ("width", "batch", "batch_size", "b"),
    "drafted": ("drafted", "n_drafted", "proposed", "draft_tokens", "draft", "num_draft_tokens", "draft_n"),
    "skipped": ("skipped", "n_skipped"),
    "verified": ("verified", "n_verified", "tested", "n_tested"),
    "accepted": (
        "accepted",
        "n_accepted",
        "n_accept",
        "acc",
        "accepted_tokens",
        "draft_n_accepted",
        "num_accepted_tokens",
    ),
    "tok_s": (
        "tok_s",
        "tokens_per_second",
        "tokens_per_s",
        "tps",
        "t/s",
        "tok/s",
        "rate",
        "predicted_per_second",
        "throughput",
        "speed",
    ),
    "answer_tok_s": ("answer_tok_s", "per_stream", "per_user", "per_request", "per_stream_tok_s", "per_answer_tok_s"),
    "aggregate_tok_s": ("aggregate_tok_s", "aggregate", "total_tok_s", "sum_tok_s", "combined_tok_s"),
    "pp": ("prompt_per_second", "prefill_tok_s", "pp_tok_s"),
    "sd": ("sd", "std", "stdev", "stddev", "tok_s_sd", "tok_s_std", "std_dev"),
    "repetitions": ("reps", "n_runs", "repetitions", "runs", "samples"),
    "acceptance": ("acceptance", "acceptance_rate", "accept_rate", "accept", "acc_rate", "accept%", "acceptance_%"),
    "mean_length": (
        "mean_length",
        "accept_length",
        "accept_len",
        "mean_len",
        "a.len",
        "mean_accepted_length",
        "mal",
        "tau",
        "acceptance_length",
        "mean_acceptance_length",
        "tokens/step",
        "tokens_per_step",
    ),
    "speedup": ("speedup", "speed_up", "speed-up", "gain", "ratio", "vs_baseline"),
    "n_prompt": ("n_prompt", "prompt_tokens", "prompt_n", "input_tokens"),
    "n_prompt_evaluated": ("n_prompt_evaluated", "evaluated", "evals", "prompt_evals", "n_p_eval"),
    "requested": ("requested", "n_predict", "max_tokens", "max_new_tokens"),
    "depth": ("depth", "n_depth", "context", "ctx_depth", "n_kv"),
    "test": ("test",),
}
SETTINGS = (
    "build",
    "build_commit",
    "build_number",
    "model",
    "quant",
    "quantization",
    "backend",
    "engine",
    "device",
    "gpu",
    "machine",
    "host",
    "n_gpu_layers",
    "ngl",
    "n_ctx",
    "ctx",
    "n_seq_max",
    "n_batch",
    "n_ubatch",
    "ub",
    "type_k",
    "type_v",
    "kv",
    "flash_attn",
    "fa",
    "sampler",
    "threads",
    "n_threads",
    "kv_unified",
    "split_mode",
    "sm",
    "tensor_split",
    "driver",
)
"""Columns that say under which conditions a row was measured; they have to agree between arms."""
IGNORED = re.compile(
    r"^(date|day|notes?|comments?|remarks?|status|link|url|source|author|user|#|no|id|index|when|by|date_?time)$"
)
RATE = re.compile(r"(tok(en)?s?|\bt|tg|pp)\s*(/|per|_per_|p)\s*s(ec(ond)?)?\b|\btps\b|tok_?s\b", re.IGNORECASE)
_TEST = re.compile(r"\b(pp|tg)\s?(\d{1,7})\b", re.IGNORECASE)
_PROMPT = re.compile(r"prompt|prefill|input|\bpp\b", re.IGNORECASE)
_SUM = re.compile(r"\b(total|tot|agg|aggregate|sum|combined|system|all)\b|throughput", re.IGNORECASE)
_ONE = re.compile(r"\b(req|request|user|stream|answer|client|single|seq|each|slot)s?\b|/user|/req", re.IGNORECASE)
_BASE = re.compile(r"\b(base|baseline|plain|stock|off|without|no)\b", re.IGNORECASE)
_ENDS = {"(s)": "seconds", "[s]": "seconds", "(ms)": "ms", "[ms]": "ms"}
_CANONICAL = {alias: name for name, aliases in ALIASES.items() for alias in aliases}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a column is; `test` is tg128 or the like where the name says so."""

    name: str
    test: str = ""


def meaning(header: str) -> Meaning | None:
    """The meaning of a column's name, None where it has none here."""
    words = header.strip().strip("*`").strip().lower()
    plain = re.sub(r"[\s\-]+", "_", words)
    if plain in SETTINGS:
        return Meaning(plain)
    if plain in _CANONICAL:
        return Meaning(_CANONICAL[plain])
    test = _TEST.search(words.replace("_", " "))
    if test and (RATE.search(words) or test[0].replace(" ", "") == plain.replace("_", "")):
        name = test[1].lower() + test[2]
        return Meaning("pp" if test[1].lower() == "pp" else "tok_s", name)
    if RATE.search(words):
        spread = words.replace("_", " ")
        if _PROMPT.search(spread):
            return Meaning("pp")
        return Meaning("answer_tok_s" if _ONE.search(spread) else "aggregate_tok_s" if _SUM.search(spread) else "tok_s")
    for end, unit in _ENDS.items():
        if words.endswith(end):
            inner = re.sub(r"[\s\-]+", "_", words.removesuffix(end).strip())
            known = _CANONICAL.get(f"{inner}_{'s' if unit == 'seconds' else 'ms'}")
            return Meaning(known or unit)
    bare = re.sub(r"\s*[\[(][^\])]*[\])]\s*$", "", words)
    if bare != words and bare:
        return meaning(bare)
    return None
