"""The configuration of one point of a sweep, checked: what types cannot tell.

It knows nothing about Hydra, cells, models on disk or running. What there is to set is in `bench.plan.settings`, what a
method has is declared by the method.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest
from bench.plan.engines import ENGINES
from bench.plan.settings import CHOICES, LEAST, Config
from bench.records.drawing import PENALTIES

MOST_GPUS = 16
"""As llama.cpp has it (`llama_max_devices`)."""
CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def get(config: Config, key: str) -> Any:
    """Value of a dotted key."""
    value: Any = config
    for part in key.split("."):
        value = getattr(value, part)
    return value


def check(config: Config) -> None:
    """Raise `UserError` for a value or a combination that cannot be run."""
    for key, choices in CHOICES.items():
        value = get(config, key)
        if value not in choices:
            raise UserError(f"{key}={value} is not a choice; {nearest(str(value), choices)}")
    for key, low in LEAST.items():
        if get(config, key) < low:
            raise UserError(f"{key}={get(config, key)} is below {low}; give a larger value")
    if not math.isfinite(config.measure.until) or config.measure.until >= 1:
        raise UserError(f"measure.until={config.measure.until} is no half width of a log ratio; 0.05 is 5 %, 0 is none")
    if not math.isfinite(config.measure.budget):
        raise UserError(f"measure.budget={config.measure.budget} is no number of minutes; give one, as in "
                        "measure.budget=5")  # fmt: skip
    if config.temperature < 0 or not math.isfinite(config.temperature):
        fault = "is below 0" if config.temperature < 0 else "is no temperature"
        raise UserError(f"temperature={config.temperature} {fault}; 0 is greedy, 0.7 is a usual value")
    _check_chain(config)
    _check_split(config.engine.tensor_split)
    for item in config.prompts.items:
        for key in ("id", "class"):
            if not (str(item[key]).isprintable() and str(item[key])):
                raise UserError(f"a prompt's {key} is {str(item[key])[:40]!r}; give it letters that can be shown in "
                                "one line of a table")  # fmt: skip
    classes = {item["class"] for item in config.prompts.items}
    if config.prompts.domain and config.prompts.domain not in classes:
        raise UserError(f"prompts.domain={config.prompts.domain} is no class of the prompt set "
                        f"'{config.prompts.name}'; {nearest(config.prompts.domain, classes)}")  # fmt: skip
    most = config.method.spec.most_streams
    if most is not None and config.streams > most:
        raise UserError(f"streams={config.streams}: {config.method.name} takes 1 to {most} streams; lower streams")
    if config.machine is not None and not re.fullmatch(r"(?!reference$)\w[\w.-]*", config.machine):
        raise UserError(f"machine={config.machine} is no name for a folder of results; use letters, digits and '-'")
    if config.engine.n_batch < config.streams:
        raise UserError(f"engine.n_batch={config.engine.n_batch} does not hold a token of each of streams="
                        f"{config.streams}; set engine.n_batch={config.streams} or more")  # fmt: skip
    for key in ("peers.widths", "measure.counted_widths"):
        widths = get(config, key)
        if min(widths, default=0) < 1 or len({*widths}) < len(widths):
            raise UserError(f"{key}={widths} are no widths of a decode; write each once, as in {key}=[1,2,4,8]")
    if config.measure.chunk > 0 and not config.ignore_eos:
        raise UserError(f"measure.chunk={config.measure.chunk} lets arms take turns after so many tokens of every "
                        "answer, and with ignore_eos=false answers end at different times; set measure.chunk=0")
    _check_counters(config)
    own_peers = ENGINES[config.model.engine].peers
    if not own_peers and (config.peers.llama_bench or config.peers.llama_batched_bench):
        raise UserError(f"peers are programs of llama.cpp, beside which model.engine={config.model.engine} shows "
                        "nothing about the loop; leave peers out, or model.engine")  # fmt: skip
    if config.engine.sampler == "backend" and config.temperature > 0:
        raise UserError(f"engine.sampler=backend is greedy only and temperature={config.temperature}; use sampler=host")
    if config.n_predict + config.streams > config.engine.n_ctx:
        raise UserError(
            f"n_predict={config.n_predict} and streams={config.streams} do not fit engine.n_ctx={config.engine.n_ctx} "
            f"tokens a stream; set engine.n_ctx={config.n_predict + config.streams + 128}"
        )


def _check_split(given: str) -> None:
    """Raise `UserError` for what is no shares of GPUs."""
    parts = given.split("/") if given else []
    sound = len(parts) <= MOST_GPUS and all(re.fullmatch(r"[0-9]+(\.[0-9]+)?", part) for part in parts)
    if not sound or (parts and not sum(map(float, parts))):
        raise UserError(f"engine.tensor_split={given} is no shares of GPUs; write a number for each of at most "
                        f"{MOST_GPUS}, as in engine.tensor_split=3/1")  # fmt: skip


def _check_chain(config: Config) -> None:
    for key, good, told in (
        ("top_p", 0 < config.top_p <= 1, "above 0 and at most 1, as in top_p=0.95; 1 keeps all tokens"),
        ("min_p", config.min_p < 1, "below 1, as in min_p=0.05; 0 keeps all tokens"),
        ("repeat_penalty", 0 < config.repeat_penalty < 100, "above 0, as in repeat_penalty=1.1; 1 is none"),
        ("frequency_penalty", abs(config.frequency_penalty) <= 100, "a number of logits, as in 0.5; 0 is none"),
        ("presence_penalty", abs(config.presence_penalty) <= 100, "a number of logits, as in 0.5; 0 is none"),
    ):
        if not (math.isfinite(get(config, key)) and good):
            raise UserError(f"{key}={get(config, key)} is no such value: it is {told}")
    if config.engine.sampler != "backend":
        return
    penalties = [key for key in PENALTIES if get(config, key) != PENALTIES[key]]
    if penalties or not config.ignore_eos:
        key = penalties[0] if penalties else "ignore_eos"
        raise UserError(f"engine.sampler=backend takes the likeliest token as it is, and {key}="
                        f"{str(get(config, key)).lower()} changes what is drawn; use engine.sampler=host")  # fmt: skip


def _check_counters(config: Config) -> None:
    if config.counters == "none":
        return
    if not ENGINES[config.model.engine].peers:
        raise UserError(f"counters={config.counters} counts llama.cpp's kernels, and model.engine="
                        f"{config.model.engine} has none of them; leave counters out, or model.engine")  # fmt: skip
    widest = max(config.measure.counted_widths)
    if widest > config.engine.n_batch:
        raise UserError(f"measure.counted_widths: a decode of {widest} tokens does not fit engine.n_batch="
                        f"{config.engine.n_batch}; set engine.n_batch={widest}")  # fmt: skip
