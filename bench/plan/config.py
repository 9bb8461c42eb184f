"""The structured configuration of one point of a sweep, and the checks that types cannot make.

It knows nothing about Hydra, cells, models on disk or running. What a method has is declared by the method.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from bench.errors import UserError, nearest
from bench.plan.engines import ENGINES
from pti_loop.parameters import Spec, declared

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
STOCK = "stock"
"""The build of the engine that set-up installed."""
CHOICES = {
    "model.engine": tuple(ENGINES),
    "engine.sampler": ("host", "backend"),
    "engine.flash_attn": ("auto", "on", "off"),
    "engine.type_k": ("f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"),
    "engine.type_v": ("f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"),
    "engine.split_mode": ("none", "layer", "row", "tensor"),
    "counters": ("none", "auto", "ncu", "rocprof", "rocprofv3"),
}
LEAST = {
    "streams": 1, "n_predict": 2, "seed": 0, "engine.n_ctx": 8, "engine.n_batch": 1, "engine.n_ubatch": 1,
    "engine.threads": 0, "engine.n_gpu_layers": -1, "engine.main_gpu": 0, "depth": 0,
    "measure.per_class": 1, "measure.blocks_per_prompt": 1,
    "measure.again_blocks": 0, "measure.control_blocks": 0, "measure.control_tokens": 0, "measure.warmup_tokens": 0,
    "measure.contexts": 0, "measure.until": 0, "measure.chunk": 0, "measure.texts": 0, "measure.budget": 0,
    "measure.noise_prompts": 1, "measure.distribution": 0,
    "measure.step_widths": 1, "measure.step_passes": 2, "measure.step_repeats": 1,
    "measure.step_depth": 1, "peers.pairs": 1, "peers.n_gen": 1,
}  # fmt: skip
"""The first pass of the step cost is warm-up, so that one alone would leave nothing."""


@dataclass
class ModelConfig:
    """Where the weights are: `path`, or `file` of the installed package `package`, or of this repository."""

    name: str = "gguf"
    path: str | None = None
    package: str | None = None
    file: str | None = None
    sha256: str | None = None
    """Digest of `file` where the package and those that it requires hold it in parts."""
    licence: str = "unknown"
    synthetic: bool = False
    """Whether the weights are random. The file says it, whatever is set here."""
    engine: str = "llama"
    """What decodes it: `llama` is llama.cpp, `hf` is transformers (`make setup EXTRA=hf`)."""


@dataclass
class MethodConfig:
    """A way of decoding and every parameter that it has, as `pti_loop.parameters.resolve` gives them."""

    name: str = "stagger"
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> Spec:
        """What it declares."""
        return declared()[self.name]


@dataclass
class EngineConfig:
    """How contexts are made. `n_ctx` is tokens a stream; threads 0 means all cores that this process may use."""

    n_ctx: int = 512
    n_batch: int = 512
    n_ubatch: int = 512
    threads: int = 0
    kv_unified: bool = False
    type_k: str = "f16"
    type_v: str = "f16"
    flash_attn: str = "auto"
    n_gpu_layers: int = -1
    sampler: str = "host"
    offload_kqv: bool = True
    """Whether the cache of offloaded layers lies on the GPU, too."""
    split_mode: str = "layer"
    """How a model lies on several GPUs."""
    main_gpu: int = 0
    """The GPU of a model that is not split."""
    repack: bool = True
    """Whether weights may lie in the order that a backend's own kernels take them in, where it has such an order."""
    build: str = STOCK
    """The engine's build: the one that set-up installed, a name of `builds/`, or a folder of libraries."""


@dataclass
class TreatedEngineConfig:
    """The engine's settings as the treatment has them; None: as the baseline has them."""

    n_batch: int | None = None
    n_ubatch: int | None = None
    threads: int | None = None
    kv_unified: bool | None = None
    type_k: str | None = None
    type_v: str | None = None
    flash_attn: str | None = None
    n_gpu_layers: int | None = None
    sampler: str | None = None
    offload_kqv: bool | None = None
    split_mode: str | None = None
    main_gpu: int | None = None
    repack: bool | None = None
    build: str | None = None


@dataclass
class TreatmentConfig:
    """In what the treatment differs from the baseline beside its method: a build, or one setting."""

    engine: TreatedEngineConfig = field(default_factory=TreatedEngineConfig)


@dataclass
class PromptsConfig:
    """A prompt set: items of {id, class, text}."""

    name: str = "default"
    licence: str = "unknown"
    domain: str = ""
    """The class that a drafter of this set was tuned on; all others are off its domain. Empty when no class is."""
    items: list[Any] = field(default_factory=list)


@dataclass
class MeasureConfig:
    """How much is measured."""

    per_class: int = 1
    """Prompts taken from each class, in the set's order."""
    classes: list[str] = field(default_factory=list)
    """Classes to take; empty means all."""
    blocks_per_prompt: int = 1
    again_blocks: int = 3
    """Blocks that also run the second baseline of the A/A control."""
    contexts: int = 0
    """How many times the contexts of all arms are made in the course of the blocks, since contexts of one kind differ
    on a GPU. 0 is three times where layers are offloaded, else once."""
    control_blocks: int = 1
    """Blocks that also run sabotage, oracle and the same-context baseline."""
    control_tokens: int = 10
    """Tokens that sabotage and oracle decode; 0 means n_predict."""
    warmup_tokens: int = 6
    noise_prompts: int = 1
    """Prompts whose answer is replayed in both shapes to measure the noise."""
    distribution: int = 0
    """Short runs behind one fixed prefix whose tokens are counted against plain decoding's exact probabilities, above
    temperature 0; as many with a planted bias. 0 leaves the test out."""
    sharp: bool = True
    """Decode the texts in both arms on F16 weights of the same file too, untimed, where these fit into the memory: the
    shape of a decode moves logits some forty times less there, and a lossless loop says the same. The F16 file is kept
    in the user's cache."""
    texts: int = 0
    """Further prompts of each class that the arm decodes once, untimed: how its guesses are accepted there says what
    the speed-up is over more texts than were timed. Not for several independent answers."""
    chunk: int = 0
    """Tokens of each answer after which the arms of a block take turns, both of their runs being open; 0: whole runs,
    one after the other."""
    until: float = 0.0
    """Half width of the interval of the log ratio, for these texts, that is narrow enough: every prompt gets further
    blocks until it is reached, or the interval lies on one side of 1.00, or the budget ends. 0: no further blocks."""
    budget: float = 5.0
    """Minutes that the blocks of a cell may take where `until` asks for further ones. Those of the plan always run."""
    step_widths: int = 16
    step_passes: int = 3
    step_repeats: int = 2
    step_depth: int = 32
    """Tokens already in every sequence when a step is timed."""
    counted_widths: list[int] = field(default_factory=lambda: [1, 2, 4, 8])
    """Widths of the decodes whose kernels `counters` has counted."""


@dataclass
class PeersConfig:
    """Other programs to run on the same model and build, as outside denominators."""

    llama_bench: str | None = None
    llama_batched_bench: str | None = None
    widths: list[int] = field(default_factory=lambda: [1, 2, 4])
    """Widths that llama-batched-bench runs at, each in a context of its own, and our loop beside it."""
    pairs: int = 5
    n_gen: int = 64


@dataclass
class Config:
    """One point of a sweep."""

    model: ModelConfig = field(default_factory=ModelConfig)
    method: Any = field(default_factory=MethodConfig)
    """The name and the parameters while it is composed, then a `MethodConfig`."""
    engine: EngineConfig = field(default_factory=EngineConfig)
    treatment: TreatmentConfig = field(default_factory=TreatmentConfig)
    prompts: PromptsConfig = field(default_factory=PromptsConfig)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    peers: PeersConfig = field(default_factory=PeersConfig)
    streams: int = 4
    temperature: float = 0.0
    n_predict: int = 24
    depth: int = 0
    """Tokens of other text before every prompt; `engine.n_ctx` counts what comes behind them."""
    seed: int = 1
    profile: bool = True
    """Measure the step-cost curve, bandwidth and memory of the model once beside the contrasts."""
    counters: str = "none"
    """Profiler that counts what the kernels of a decode read, in place of a contrast: `auto` is the one of the GPU."""
    points: list[str] = field(default_factory=list)
    """Lines of overrides, each a sweep of its own; what an experiment consists of."""
    machine: str | None = None
    results: str = "results"
    reports: str = "reports"
    claims: str = "all"
    """Sheets that are judged: all of configs/claims, or some, by their names or as files, joined by commas."""
    wait: float = 0.0
    """Seconds to wait for a device that another process measures on."""
    limit: float = 0.0
    """Seconds of silence after which a cell counts as hung and is ended; 0: a multiple of what it should take."""


def _keys(kind: type, prefix: str = "") -> list[str]:
    """Dotted names of every setting."""
    names: list[str] = []
    hints = get_type_hints(kind)
    for item in fields(kind):
        name = prefix + item.name
        names.append(name)
        if is_dataclass(hints[item.name]):
            names += _keys(hints[item.name], name + ".")
    return names


KEYS = [*_keys(Config), "method.name", "experiment"]


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
