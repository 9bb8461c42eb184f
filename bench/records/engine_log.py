"""What llama.cpp's log of a cell says of models, devices and contexts: a witness that the harness did not write.

A number is told as the log rounds it, by the least and the most that it may be. It knows nothing of what a cell says
itself; lines that another version of llama.cpp writes otherwise are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bench.records.bounded import unpacked

_BEGINS = "llama_model_loader: loaded meta data"
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12, "MiB": 2.0**20, "GiB": 2.0**30}
Span = tuple[float, float]


def _whole(told: re.Match[str]) -> Span:
    return float(told[1]), float(told[1])


def _rounded(told: re.Match[str]) -> Span:
    """A number with its unit: it may be half of its last digit more or less."""
    digits = len(told[1].partition(".")[2])
    value, half, unit = float(told[1]), 0.5 * 10.0**-digits, _UNITS[told[2]]
    return (value - half) * unit, (value + half) * unit


_NUMBERS: Mapping[str, tuple[re.Pattern[str], Callable[[re.Match[str]], Span]]] = {
    "n_layer": (re.compile(r"^print_info: n_layer += (\d+)\s*$", re.MULTILINE), _whole),
    "n_vocab": (re.compile(r"^print_info: n_vocab += (\d+)\s*$", re.MULTILINE), _whole),
    "n_params": (re.compile(r"^print_info: model params += ([\d.]+) ?([KMBT]?)\s*$", re.MULTILINE), _rounded),
    "tensor_bytes": (re.compile(r"^print_info: file size += ([\d.]+) (MiB|GiB) ", re.MULTILINE), _rounded),
    "layers_offloaded": (re.compile(r"^load_tensors: offloaded (\d+)/\d+ layers to GPU", re.MULTILINE), _whole),
    "layers_offloadable": (re.compile(r"^load_tensors: offloaded \d+/(\d+) layers to GPU", re.MULTILINE), _whole),
}
"""By the name that a cell's facts have for it."""
_WORDS = {
    "architecture": re.compile(r"^print_info: arch += (\S+)\s*$", re.MULTILINE),
    "file_type": re.compile(r"^print_info: file type += (\S.*?)\s*$", re.MULTILINE),
}
_DEVICE = re.compile(r"^ *Device \d+: (.+?), (?:compute capability|gfx)", re.MULTILINE)
_CACHE = re.compile(r"^llama_kv_cache: size = .*, K \((\w+)\): .*, V \((\w+)\): ", re.MULTILINE)
_SEQUENCES = re.compile(r"^llama_context: n_seq_max += (\d+)\s*$", re.MULTILINE)
_DUMPED = re.compile(r"^llama_model_loader: - kv +\d+:", re.MULTILINE)
_SYNTHETIC = re.compile(r"^llama_model_loader: - kv +\d+: +pti_bench\.synthetic bool += true\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model as the log of its loading tells it; what the log does not tell is not there."""

    numbers: Mapping[str, Span] = field(default_factory=dict[str, Span])
    """Least and most, by the name that a cell's facts have for it."""
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    """`architecture`, and `file_type` in llama.cpp's words."""
    synthetic: bool | None = None
    """Whether its file says that its weights are random; None where the log does not list what the file says."""


@dataclass(frozen=True, slots=True)
class EngineLog:
    """What one log tells; what it does not tell is empty."""

    models: tuple[Loaded, ...] = ()
    """Every model that was loaded, in order."""
    devices: frozenset[str] = frozenset()
    """GPUs, as their driver calls them."""
    caches: frozenset[tuple[str, str]] = frozenset()
    """Formats of keys and values of the contexts."""
    sequences: frozenset[int] = frozenset()
    """How many sequences contexts were made for."""


NOTHING = EngineLog()


def engine_log(content: bytes) -> EngineLog:
    """Of a gzip file's content. Raises what unpacking raises."""
    text = unpacked(content).decode("utf-8", "replace")
    return EngineLog(
        tuple(map(_loaded, text.split(_BEGINS)[1:])), frozenset(_DEVICE.findall(text)),
        frozenset((keys, values) for keys, values in _CACHE.findall(text)),
        frozenset(map(int, _SEQUENCES.findall(text))),
    )  # fmt: skip


def _loaded(text: str) -> Loaded:
    numbers = {name: read(told) for name, (line, read) in _NUMBERS.items() if (told := line.search(text))}
    words = {name: told[1] for name, line in _WORDS.items() if (told := line.search(text))}
    return Loaded(numbers, words, bool(_SYNTHETIC.search(text)) if _DUMPED.search(text) else None)
