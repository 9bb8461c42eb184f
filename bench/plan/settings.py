"""Every setting of a sweep: its type, its usual value, its words, and what it may be. The one place that says so.

`sweep --help` prints it, `bench.plan.config` checks by it, Hydra takes its schema from it. It checks nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any, get_type_hints

from bench.plan.engines import ENGINES
from bench.records.drawing import CHAIN, ENDS, PLAIN, USUAL
from pti_loop.parameters import Spec, declared

STOCK = "stock"
"""The build of the engine that set-up installed."""
CACHE_TYPES = ("f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0")


def setting(usual: Any, words: str, least: float | None = None, choices: tuple[str, ...] = ()) -> Any:
    """A field with what there is to say of it."""
    return field(default=usual, metadata=told(words, least, choices))


def told(words: str, least: float | None = None, choices: tuple[str, ...] = ()) -> dict[str, Any]:
    """What there is to say of a field whose value is made anew for each configuration."""
    return {"help": words, "least": least, "choices": choices}


@dataclass
class ModelConfig:
    """The model: a choice of the group, or any GGUF file as `model=gguf model.path=FILE`."""

    name: str = setting("gguf", "what it is called in tables; any other name than gguf stays as it is given")
    path: str | None = setting(None, "a file of weights")
    package: str | None = setting(None, "in place of a path: the installed package that holds `model.file`")
    file: str | None = setting(None, "a file of that package or of this repository")
    sha256: str | None = setting(None, "digest that the file of `model.path` must have; of `model.file` where packages "
                                "hold it in parts")
    licence: str = setting("unknown", "licence of the weights, for the record")
    synthetic: bool = setting(False, "whether the weights are random; the file says it, whatever is set here")
    engine: str = setting("llama", "what decodes it: llama is llama.cpp, hf is transformers (`make setup EXTRA=hf`), "
                          "server are servers that are started here or answer at an address",
                          choices=tuple(ENGINES))  # fmt: skip
    served: str = setting("", "what a server at an address calls the model")


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
    """How contexts are made, in both arms."""

    n_ctx: int = setting(512, "tokens of context a stream", least=8)
    n_batch: int = setting(512, "most tokens of one call", least=1)
    n_ubatch: int = setting(512, "most tokens that are computed at once", least=1)
    threads: int = setting(0, "threads; 0 is all cores that this process may use", least=0)
    kv_unified: bool = setting(False, "one cache for all streams in place of one each")
    type_k: str = setting("f16", "type of the cache's keys", choices=CACHE_TYPES)
    type_v: str = setting("f16", "type of the cache's values", choices=CACHE_TYPES)
    flash_attn: str = setting("auto", "flash attention", choices=("auto", "on", "off"))
    n_gpu_layers: int = setting(-1, "layers on the GPU; -1 is all, 0 none", least=-1)
    sampler: str = setting("host", "where tokens are drawn; backend is greedy only", choices=("host", "backend"))
    offload_kqv: bool = setting(True, "whether the cache of offloaded layers lies on the GPU, too")
    split_mode: str = setting("layer", "how a model lies on several GPUs", choices=("none", "layer", "row", "tensor"))
    main_gpu: int = setting(0, "the GPU of a model that is not split", least=0)
    tensor_split: str = setting("", "share of the model that each GPU gets, as 3/1; by itself by their free memory")
    op_offload: bool = setting(True, "whether a GPU computes large batches of layers whose weights the CPU holds")
    repack: bool = setting(True, "whether weights may lie in the order that a backend's own kernels take them in, "
                           "where it has such an order")  # fmt: skip
    build: str = setting(STOCK, "the engine's build: stock is set-up's own, else a name of `builds/` or a folder of "
                         "libraries; build=A,B puts B on trial against A")  # fmt: skip
    server: str = setting("", "command line of a llama-server, or the address of an OpenAI-compatible server")
    cache_prompt: bool = setting(False, "whether a server may keep what it evaluated of a prompt for the next request")
    kept: bool = setting(False, "whether a server that is started here answers all requests of a cell; else each run "
                         "has a fresh one")  # fmt: skip


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
    tensor_split: str | None = None
    op_offload: bool | None = None
    repack: bool | None = None
    build: str | None = None
    server: str | None = None
    cache_prompt: bool | None = None


@dataclass
class TreatmentConfig:
    """In what the treatment differs from the baseline beside its method: a build, or one setting."""

    engine: TreatedEngineConfig = field(default_factory=TreatedEngineConfig,
                                        metadata=told("the engine's settings as the treatment has them"))  # fmt: skip


@dataclass
class PromptsConfig:
    """The prompt set."""

    name: str = setting("default", "what the set is called")
    licence: str = setting("unknown", "licence of its texts, for the record")
    domain: str = setting("", "the class that a drafter of this set was tuned on; all others are off its domain")
    path: str | None = setting(None, "a file of prompts (YAML, JSON lines, text) or a folder of such; prompts=PATH is "
                               "short for prompts=file prompts.path=PATH")  # fmt: skip
    sha256: str | None = setting(None, "digest that `prompts.path` must have; a folder's is of its names and files")
    template: str = setting(PLAIN, "model asks each prompt in the chat template that the model's file has; none takes "
                            "it as it stands", choices=(PLAIN, "model"))  # fmt: skip
    items: list[Any] = field(default_factory=list, metadata=told("the prompts, each {id, class, text}"))


@dataclass
class MeasureConfig:
    """How much is measured."""

    per_class: int = setting(1, "prompts taken from each class, in the set's order", least=1)
    classes: list[str] = field(default_factory=list, metadata=told("classes to take; empty is all"))
    blocks_per_prompt: int = setting(1, "blocks of balanced runs that each prompt gets", least=1)
    again_blocks: int = setting(3, "blocks that also run the second baseline of the A/A control; a cell without is "
                                "void", least=0)  # fmt: skip
    contexts: int = setting(0, "how many times the contexts of all arms are made in the course of the blocks, since "
                            "contexts of one kind differ on a GPU; 0 is three times where layers are offloaded, else "
                            "once", least=0)  # fmt: skip
    control_blocks: int = setting(1, "blocks that also run sabotage, oracle and the same-context baseline; a cell "
                                  "of a method that guesses is void without", least=0)  # fmt: skip
    control_tokens: int = setting(10, "tokens that sabotage and oracle decode; 0 is n_predict", least=0)
    warmup_tokens: int = setting(6, "tokens decoded before the first block", least=0)
    noise_prompts: int = setting(1, "prompts whose answer is replayed in both shapes to measure the noise", least=1)
    distribution: int = setting(0, "short runs behind one fixed prefix whose tokens are counted against plain "
                                "decoding's exact probabilities, above temperature 0; as many with a planted bias; 0 "
                                "leaves the test out", least=0)  # fmt: skip
    sharp: bool = setting(True, "decode the texts in both arms on F16 weights of the same file too, untimed, where "
                          "these fit into the memory: the shape of a decode moves logits some forty times less there, "
                          "and a lossless loop says the same; the F16 file is kept in the user's cache")  # fmt: skip
    texts: int = setting(0, "further prompts of each class that the arm decodes once, untimed: how its guesses are "
                         "accepted there says what the speed-up is over more texts than were timed; not for several "
                         "independent answers", least=0)  # fmt: skip
    chunk: int = setting(-1, "tokens of each answer after which the arms of a block take turns, both of their runs "
                         "being open; 0: whole runs, one after the other; -1 is 8 on a CPU, and 0 where answers end by "
                         "themselves or layers are offloaded, since a GPU pays for the change", least=-1)  # fmt: skip
    repeats: float = setting(1.0, "seconds that runs may be done again for, because other processes took CPU time from "
                             "them, for each second of runs that are kept, beside the first ten; 0: none",
                             least=0)  # fmt: skip
    until: float = setting(0.0, "half width of the interval of the log ratio, for these texts, that is narrow enough: "
                           "every prompt gets further blocks until it is reached, or the interval lies on one side of "
                           "1.00, or the budget ends; 0: no further blocks", least=0)  # fmt: skip
    budget: float = setting(5.0, "minutes that the blocks of a cell may take where `measure.until` asks for further "
                            "ones; those of the plan always run", least=0)  # fmt: skip
    step_widths: int = setting(16, "widest decode of the step-cost curve, in tokens", least=1)
    step_passes: int = setting(3, "passes over all widths; the first is warm-up, so that one alone would leave nothing",
                               least=2)  # fmt: skip
    step_repeats: int = setting(2, "decodes in each half of a width's turn, two or more in any case", least=1)
    step_depth: int = setting(32, "tokens already in every sequence when a step is timed", least=1)
    counted_widths: list[int] = field(default_factory=lambda: [1, 2, 4, 8], metadata=told(
        "widths of the decodes whose kernels `counters` has counted"))  # fmt: skip


@dataclass
class PeersConfig:
    """Other programs to run on the same model and build, as outside denominators."""

    llama_bench: str | None = setting(None, "llama-bench (`make peers` builds it); auto is the one beside the build's "
                                       "libraries, or of `make peers`, where there is one")  # fmt: skip
    llama_batched_bench: str | None = setting(None, "llama-batched-bench, likewise")
    widths: list[int] = field(default_factory=lambda: [1, 2, 4], metadata=told(
        "widths that llama-batched-bench runs at, each in a context of its own, and our loop beside it"))  # fmt: skip
    pairs: int = setting(5, "how often a program and our loop run in turns", least=1)
    n_gen: int = setting(64, "tokens of each of those runs", least=1)


@dataclass
class LauncherConfig:
    """Where the cells are measured: here, or in shards by the hosts of a cluster."""

    name: str = setting("local", "what runs the shards", choices=("local", "submitit", "ray"))
    shards: int = setting(0, "how many parts the points are dealt into; 0: four for each device that is known, else 8",
                          least=0)  # fmt: skip
    gpus: int = setting(0, "GPUs of each shard, which are a device of their own; 0: the CPU of a host, for itself "
                        "alone", least=0)  # fmt: skip
    retries: int = setting(2, "how often a shard goes to another worker after its own was lost", least=0)
    cluster: str = setting("slurm", "submitit: slurm, or local for jobs of this machine", choices=("slurm", "local"))
    partition: str = setting("", "submitit: partition of Slurm")
    account: str = setting("", "submitit: account of Slurm")
    qos: str = setting("", "submitit: quality of service of Slurm")
    minutes: int = setting(240, "submitit: minutes that a job may take; one that reaches them goes on in a further job",
                           least=1)  # fmt: skip
    memory_gb: float = setting(0.0, "submitit: memory of a job; 0 leaves it to Slurm", least=0)
    cpus: int = setting(0, "submitit: CPUs of a job; 0: the whole node for shards of a CPU, what Slurm gives for a GPU",
                        least=0)  # fmt: skip
    at_once: int = setting(0, "submitit: most jobs at once; 0: as many as there are devices", least=0)
    options: list[str] = field(default_factory=list, metadata=told(
        "submitit: further options of sbatch, as in launcher.options=[reservation=NAME]"))  # fmt: skip
    address: str = setting("", "ray: the cluster's address, or auto; empty is RAY_ADDRESS, else Ray on this machine "
                           "alone")  # fmt: skip


@dataclass
class Config:
    """One point of a sweep."""

    model: ModelConfig = field(default_factory=ModelConfig, metadata=told("the model"))
    method: Any = field(default_factory=MethodConfig, metadata=told("the way of decoding"))
    """The name and the parameters while it is composed, then a `MethodConfig`."""
    engine: EngineConfig = field(default_factory=EngineConfig, metadata=told("the engine's settings"))
    treatment: TreatmentConfig = field(default_factory=TreatmentConfig, metadata=told("a build or a setting on trial"))
    prompts: PromptsConfig = field(default_factory=PromptsConfig, metadata=told("the prompt set"))
    measure: MeasureConfig = field(default_factory=MeasureConfig, metadata=told("how much is measured"))
    peers: PeersConfig = field(default_factory=PeersConfig, metadata=told("programs that run beside it"))
    launcher: LauncherConfig = field(default_factory=LauncherConfig, metadata=told("where the cells are measured"))
    streams: int = setting(4, "copies or answers decoded together, for methods that have several", least=1)
    temperature: float = setting(0.0, "sampling temperature; 0 is greedy")
    top_k: int = setting(CHAIN["top_k"], "tokens that a draw is from, the likeliest, above temperature 0; 0 is all",
                         least=0)  # fmt: skip
    top_p: float = setting(CHAIN["top_p"], "probability that the tokens of a draw have at least together, above "
                           "temperature 0; 1 is all")  # fmt: skip
    min_p: float = setting(CHAIN["min_p"], "share of the likeliest token's probability that a token of a draw has at "
                           "least, above temperature 0; 0 is all", least=0)  # fmt: skip
    repeat_penalty: float = setting(CHAIN["repeat_penalty"], "what the logit of a token that was said is divided by; 1 "
                                    "is none")  # fmt: skip
    frequency_penalty: float = setting(CHAIN["frequency_penalty"], "what is taken from a logit for each time that its "
                                       "token was said")  # fmt: skip
    presence_penalty: float = setting(CHAIN["presence_penalty"], "what is taken from a logit whose token was said at "
                                      "all")  # fmt: skip
    repeat_last_n: int = setting(CHAIN["repeat_last_n"], "newest tokens of prompt and answer that count as said; -1 is "
                                 "all of them", least=-1)  # fmt: skip
    n_predict: int = setting(24, "tokens of each answer, or the most where it may end by itself", least=2)
    ignore_eos: bool = setting(USUAL[ENDS], "whether end-of-generation tokens are never drawn, so that all answers "
                               "have n_predict tokens; false lets an answer end by itself")  # fmt: skip
    depth: int = setting(0, "tokens of other text before every prompt; `engine.n_ctx` counts what comes behind them",
                         least=0)  # fmt: skip
    seed: int = setting(1, "where the random numbers start", least=0)
    profile: bool = setting(True, "measure the step-cost curve, bandwidth and memory of the model once beside the "
                            "contrasts")  # fmt: skip
    counters: str = setting("none", "profiler that counts what the kernels of a decode read, in place of a contrast; "
                            "auto is the one of the GPU",
                            choices=("none", "auto", "ncu", "rocprof", "rocprofv3"))  # fmt: skip
    points: list[str] = field(default_factory=list, metadata=told(
        "lines of overrides, each a sweep of its own; what an experiment consists of"))  # fmt: skip
    machine: str | None = setting(None, "what this machine is called; by itself the name that `doctor` prints")
    results: str = setting("results", "folder of the records")
    reports: str = setting("reports", "folder of the report")
    claims: str = setting("all", "sheets that are judged: all of configs/claims, or some, by their names or as files, "
                          "joined by commas")  # fmt: skip
    busy: bool = setting(False, "measure on a GPU although other processes hold something on it; what they do is in "
                         "every figure")  # fmt: skip
    wait: float = setting(0.0, "seconds to wait for a device that another process measures on")
    limit: float = setting(0.0, "seconds of silence after which a cell counts as hung and is ended; 0: a multiple of "
                           "what it should take")  # fmt: skip


def settings(kind: type = Config, prefix: str = "") -> Iterator[tuple[str, Field[Any]]]:
    """Dotted name and field of every setting, of a group before those in it."""
    hints = get_type_hints(kind)
    for item in fields(kind):
        yield prefix + item.name, item
        if is_dataclass(hints[item.name]):
            yield from settings(hints[item.name], f"{prefix}{item.name}.")


KEYS = [*(name for name, _ in settings()), "method.name", "experiment"]
CHOICES: dict[str, tuple[str, ...]] = {
    name: item.metadata["choices"] for name, item in settings() if item.metadata.get("choices")
}
LEAST: dict[str, float] = {
    name: item.metadata["least"] for name, item in settings() if item.metadata.get("least") is not None
}
"""The smallest value of each number that has one."""
