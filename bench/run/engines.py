"""Which engine decodes a configuration's model (`model.engine`), and what the harness must know of it.

llama.cpp is the default; transformers is an optional extra, which is not imported before a model is loaded. It knows
nothing about cells, methods or records.
"""

from __future__ import annotations

from dataclasses import replace

from bench.errors import UserError
from bench.plan.config import Config
from pti_loop.engine import EngineError, Model
from pti_loop.gguf.file import GgufFile

LLAMA, HF = "llama", "hf"
PACKAGES = {LLAMA: (), HF: ("torch", "transformers", "accelerate")}
"""What a record lists beside the harness's own packages."""


def check_installed(name: str) -> None:
    """Raise `UserError` with the command to type when the engine's packages are not installed."""
    if name == HF:
        from pti_loop.hf import load

        try:
            load.require()
        except EngineError as error:
            raise UserError(str(error)) from error


def build(name: str) -> dict:
    """The engine's build, for a record: `build` is what two comparable records share. Raises `EngineError`."""
    if name == LLAMA:
        from bench.host import provenance

        return provenance.engine()
    from pti_loop.hf import model as hf

    facts = hf.build()
    return {**facts, "backends": ["CUDA", "CPU"] if facts["gpu_offload"] else ["CPU"]}


def offloads(config: Config) -> bool:
    """Whether the model goes to a GPU, so that the cell needs the GPU and not the CPU for itself."""
    if config.engine.n_gpu_layers == 0:
        return False
    if config.model.engine == LLAMA:
        from pti_loop.llama import model as llama

        return llama.build()["gpu_offload"]
    from bench.host import provenance
    from pti_loop.hf import model as hf

    return bool(hf.build()["gpu_offload"] and provenance.gpus())


def load(config: Config, path: str) -> Model:
    """The model, loaded. Raises `EngineError`, or `Unsupported` where the engine cannot run it."""
    if config.model.engine == HF:
        from pti_loop.hf.model import HfModel

        return HfModel(path, config.engine.n_gpu_layers)
    from pti_loop.llama.model import LlamaModel

    return LlamaModel(path, config.engine.n_gpu_layers, load_mtp=_uses_head(config))


def _uses_head(config: Config) -> bool:
    """Whether the model's nextn head drafts, whose weights are else left on disk: it alone reads hidden states."""
    from bench.run.arms import method_settings
    from pti_loop.methods import METHODS

    settings = replace(method_settings(config), rollback="rewind")
    return METHODS[config.method.name].needs(settings).get("hidden", False)


def sizes(model: Model, file: GgufFile, config: Config) -> dict:
    """What the weights and the memory of a sequence take, as loaded. transformers widens what a GGUF file holds."""
    if config.model.engine == HF:
        return {"quantization": f"{file.quantization} as {model.type_name.upper()}", **model.byte_facts()}
    return {
        "quantization": file.quantization, "tensor_bytes": file.tensor_bytes, "step_bytes": file.step_bytes,
        "kv_bytes_per_token": kv_bytes_per_token(file, config),
        "state_bytes_per_sequence": file.state_bytes_per_sequence(),
    }  # fmt: skip


def kv_bytes_per_token(file: GgufFile, config: Config) -> int:
    """Bytes that a token takes in the cache, told before anything is loaded: transformers' is float32 on a CPU."""
    if config.model.engine == HF:
        return file.kv_bytes_per_token("f32", "f32")
    return file.kv_bytes_per_token(config.engine.type_k, config.engine.type_v)


def weight_bytes(file: GgufFile, config: Config) -> int:
    """Bytes of memory that the weights take beyond the file's own, which the system can page in and out."""
    return 4 * file.n_params if config.model.engine == HF else 0
