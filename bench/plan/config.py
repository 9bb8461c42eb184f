"""The structured configuration that the YAML groups of `configs/` override, and the checks that types cannot make.

It composes one point of a sweep from overrides; it knows nothing about cells, models on disk or running.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
CHOICES = {
    "model.engine": ("llama", "hf"),
    "method.emission": ("published", "distinct"),
    "method.rebuild": ("none", "exact", "mtp"),
    "method.draws": ("independent", "coupled", "greedy"),
    "method.rollback": ("auto", "rewind", "snapshots", "checkpoint"),
    "method.drafter": ("none", "jacobi", "lookup", "draft", "twin", "adapter", "mtp", "lookup_mtp"),
    "method.stop": ("tokens", "rounds"),
    "engine.sampler": ("host", "backend"),
    "engine.flash_attn": ("auto", "on", "off"),
    "engine.type_k": ("f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"),
    "engine.type_v": ("f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"),
}
LEAST = {
    "streams": 1, "n_predict": 2, "seed": 0, "engine.n_ctx": 8, "engine.n_batch": 1, "engine.n_ubatch": 1,
    "engine.threads": 0, "engine.n_gpu_layers": -1, "measure.per_class": 1, "measure.blocks_per_prompt": 1,
    "measure.again_blocks": 0, "measure.control_blocks": 0, "measure.control_tokens": 0, "measure.warmup_tokens": 0,
    "measure.noise_prompts": 1, "measure.distribution": 0,
    "measure.step_widths": 1, "measure.step_passes": 2, "measure.step_repeats": 1,
    "measure.step_depth": 1, "peers.pairs": 1, "peers.n_gen": 1, "method.draft": 1, "method.ngram": 1,
    "method.head_draft": 1,
}  # fmt: skip
"""The first pass of the step cost is warm-up, so that one alone would leave nothing."""
MAX_STREAMS = 8


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
    """A way of decoding and its parameters; those that a method does not have keep their defaults."""

    name: str = "stagger"
    emission: str = "published"
    rebuild: str = "none"
    draws: str = "independent"
    stop: str = "tokens"
    draft: int = 7
    ngram: int = 4
    gate: bool = False
    adaptive: bool = False
    head_draft: int = 1
    rollback: str = "auto"
    drafter: str = "none"
    draft_model: str = ""
    twin: str = "q2_k"
    adapter: str = ""


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
    step_widths: int = 16
    step_passes: int = 3
    step_repeats: int = 2
    step_depth: int = 32
    """Tokens already in every sequence when a step is timed."""


@dataclass
class PeersConfig:
    """Other programs to run on the same model and build, as outside denominators."""

    llama_bench: str | None = None
    llama_batched_bench: str | None = None
    pairs: int = 5
    n_gen: int = 64


@dataclass
class Config:
    """One point of a sweep."""

    model: ModelConfig = field(default_factory=ModelConfig)
    method: MethodConfig = field(default_factory=MethodConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    prompts: PromptsConfig = field(default_factory=PromptsConfig)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    peers: PeersConfig = field(default_factory=PeersConfig)
    streams: int = 4
    temperature: float = 0.0
    n_predict: int = 24
    seed: int = 1
    profile: bool = True
    """Measure the step-cost curve, bandwidth and memory of the model once beside the contrasts."""
    points: list[str] = field(default_factory=list)
    """Lines of overrides, each a sweep of its own; what an experiment consists of."""
    machine: str | None = None
    results: str = "results"
    reports: str = "reports"
    claims: str = "pti"


_registered = False


def _hydra():
    """Hydra's compose API, with the schema registered. Imported late: it costs more than printing the help."""
    global _registered
    from hydra import compose, initialize_config_dir
    from hydra.core.config_store import ConfigStore

    if not _registered:
        ConfigStore.instance().store(name="schema", node=Config)
        _registered = True
    return compose, initialize_config_dir


def expand(overrides: list[str]) -> list[list[str]]:
    """Every combination of the values of comma-separated overrides, by Hydra's own sweeper."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import OverrideParseException

    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except OverrideParseException as error:
        raise UserError(f"override '{error.override}' cannot be read: {_first_line(error)}; write key=value") from error
    batches = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    return [list(point) for batch in batches for point in batch]


def compose_points(overrides: list[str]) -> list[Config]:
    """Configurations of a sweep, checked, in order and without repeats.

    An experiment's `points` are lines of overrides; what is given by hand comes after them and wins.
    Raises `UserError` naming the unknown key or bad value and the nearest valid one.
    """
    from omegaconf import OmegaConf

    compose, initialize = _hydra()
    overrides = ["+" + item if item.startswith("experiment=") else item for item in overrides]
    # configs/claims is a folder, so Hydra would take claims=FILE for the choice of a group.
    sheets = [item.split("=", 1)[1] for item in overrides if item.startswith("claims=")]
    overrides = [item for item in overrides if not item.startswith("claims=")]
    found: dict[str, Config] = {}
    with initialize(config_dir=str(CONFIGS), version_base="1.3"):
        heads = [_compose(compose, point) for point in expand(overrides)]
        own = [item for item in overrides if not item.lstrip("+").startswith("experiment")]
        lines = [line.split() for head in heads[:1] for line in head.points] if heads else []
        if lines:
            names = {item.split("=", 1)[0].lstrip("+~") for item in own}
            heads = []
            for line in lines:
                kept = [item for item in line if item.split("=", 1)[0] not in names]
                experiment = [item for item in overrides if item not in own]
                heads += [_compose(compose, point) for point in expand([*experiment, *kept, *own])]
        for head in heads:
            head.points, head.claims = [], sheets[-1] if sheets else head.claims
            config = OmegaConf.to_object(head)
            check(config)
            found.setdefault(OmegaConf.to_yaml(head, sort_keys=True), config)
    return list(found.values())


def _compose(compose, overrides: list[str]):
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        return compose(config_name="config", overrides=overrides)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_explain(error, overrides)) from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _explain(error: BaseException, overrides: list[str]) -> str:
    """Hydra's error as one sentence with the nearest valid name."""
    text = str(error) + " " + str(error.__cause__ or "")
    option = re.search(r"Could not find '([^']+)'", text)
    if option and "/" in option[1]:
        group, choice = option[1].rsplit("/", 1)
        valid = [path.stem for path in (CONFIGS / group).glob("*.yaml")]
        return f"{group}={choice}: there is no such {group} in configs/{group}; {nearest(choice, valid)}"
    for override in overrides:
        key = override.split("=", 1)[0].lstrip("+~")
        if key not in KEYS and not (CONFIGS / key).is_dir():
            return f"unknown key '{key}'; {nearest(key, KEYS)}"
    added = re.search(r"append your config with \+?'?([\w.]+)|key '([\w.]+)' already", text)
    if added or "already at" in text:
        return f"{_first_line(error)}; the key exists, so write it without the '+'"
    bad = next((item for item in overrides if item.split("=", 1)[0] in text), "")
    if "is not a ListConfig" in text and bad:
        return f"{bad}: a list is wanted; write {bad.replace('=', '=[', 1)}]"
    return f"{bad + ': ' if bad else ''}{_first_line(error.__cause__ or error)}"


def _keys(kind: type, prefix: str = "") -> list[str]:
    """Dotted names of every setting."""
    from dataclasses import fields, is_dataclass
    from typing import get_type_hints

    names: list[str] = []
    hints = get_type_hints(kind)
    for item in fields(kind):
        name = prefix + item.name
        names.append(name)
        if is_dataclass(hints[item.name]):
            names += _keys(hints[item.name], name + ".")
    return names


KEYS = [*_keys(Config), "experiment"]


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
    if config.temperature < 0 or not math.isfinite(config.temperature):
        fault = "is below 0" if config.temperature < 0 else "is no temperature"
        raise UserError(f"temperature={config.temperature} {fault}; 0 is greedy, 0.7 is a usual value")
    classes = {item["class"] for item in config.prompts.items}
    if config.prompts.domain and config.prompts.domain not in classes:
        raise UserError(f"prompts.domain={config.prompts.domain} is no class of the prompt set "
                        f"'{config.prompts.name}'; {nearest(config.prompts.domain, classes)}")  # fmt: skip
    if config.streams > MAX_STREAMS and config.method.name == "stagger":
        raise UserError(f"streams={config.streams}: stagger takes 1 to {MAX_STREAMS} streams; lower streams")
    if config.machine is not None and not re.fullmatch(r"(?!reference$)\w[\w.-]*", config.machine):
        raise UserError(f"machine={config.machine} is no name for a folder of results; use letters, digits and '-'")
    if config.engine.n_batch < config.streams:
        raise UserError(f"engine.n_batch={config.engine.n_batch} does not hold a token of each of streams="
                        f"{config.streams}; set engine.n_batch={config.streams} or more")  # fmt: skip
    if config.model.engine == "hf" and (config.peers.llama_bench or config.peers.llama_batched_bench):
        raise UserError("peers are programs of llama.cpp, beside which model.engine=hf shows nothing about the loop; "
                        "leave peers out, or model.engine")  # fmt: skip
    if config.engine.sampler == "backend" and config.temperature > 0:
        raise UserError(f"engine.sampler=backend is greedy only and temperature={config.temperature}; use sampler=host")
    if config.n_predict + config.streams > config.engine.n_ctx:
        raise UserError(
            f"n_predict={config.n_predict} and streams={config.streams} do not fit engine.n_ctx={config.engine.n_ctx} "
            f"tokens a stream; set engine.n_ctx={config.n_predict + config.streams + 128}"
        )
