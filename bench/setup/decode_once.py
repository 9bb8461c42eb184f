"""One decode of one token, as a program of its own: `python -m bench.setup.decode_once MODEL`.

It is run as a child because a build that does not fit the machine kills the process that loads it. Uses the binding's
low-level API and nothing else of this project. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time

_kept: list[object] = []
"""The library may still call the log function while the process ends, after `main` has returned."""


def main(path: str) -> int:
    """Load, decode, look at the logits. Exit code 0, or 3 with the reason in the JSON."""
    from llama_cpp import llama_cpp as lib

    words: list[str] = []

    def keep(_level: int, text: bytes, _user: object) -> None:
        words.append(text.decode("utf-8", "replace"))

    silent = lib.llama_log_callback(keep)
    lib.llama_log_set(silent, None)
    _kept.append(silent)
    lib.llama_backend_init()
    start = time.perf_counter()
    model = lib.llama_model_load_from_file(path.encode(), lib.llama_model_default_params())
    if not model:
        return _report(3, error="the model does not load: " + _last(words))
    params = lib.llama_context_default_params()
    params.n_ctx, params.n_batch = 64, 8
    context = lib.llama_init_from_model(model, params)
    if not context:
        return _report(3, error="no context can be made: " + _last(words))
    loaded = time.perf_counter()
    token = (lib.llama_token * 1)(1)
    code = lib.llama_decode(context, lib.llama_batch_get_one(token, 1))
    if code:
        return _report(3, error=f"llama_decode returns {code}: " + _last(words))
    n_vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    logits = lib.llama_get_logits_ith(context, 0)[:n_vocab]
    if not all(abs(value) < float("inf") for value in logits) or max(logits) == min(logits):
        return _report(
            3, error="the logits of one decode are not numbers, or all the same: this build computes wrongly"
        )
    decoded = time.perf_counter()
    return _report(0, load_s=loaded - start, decode_s=decoded - loaded, n_vocab=n_vocab)


def _last(words: list[str]) -> str:
    lines = [line.strip() for line in "".join(words).splitlines() if line.strip(" .")]
    return " | ".join(lines[-2:])


def _report(code: int, **facts: object) -> int:
    print(json.dumps(facts), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
