"""What the reference's logs say of models, against what their files' own headers said, and lines that are not there."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bench.records.cells import StoredCell, read_cell, whole_cells
from bench.records.engine_log import EngineLog, Loaded, engine_log

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
LINES = """llama_model_loader: loaded meta data with 3 key-value pairs and 5 tensors from a.gguf (version GGUF V3)
llama_model_loader: - kv   0:                       general.architecture str              = qwen35
llama_model_loader: - kv   4:                        pti_bench.synthetic bool             = true
print_info: file type   = Q4_K - Medium
print_info: file size   = 1.25 GiB (4.60 BPW)
print_info: arch                  = qwen35
print_info: n_layer               = 12
print_info: n_layer_all           = 13
print_info: model params          = 2.30 B
print_info: n_vocab               = 1000
load_tensors: offloaded 13/14 layers to GPU
"""


def packed(text: str) -> bytes:
    return gzip.compress(text.encode())


def models(content: bytes) -> tuple[Loaded, ...]:
    return engine_log(content).models


def test_every_number_has_the_width_of_its_last_digit() -> None:
    (found,) = models(packed(LINES))
    assert found.words == {"architecture": "qwen35", "file_type": "Q4_K - Medium"}
    assert found.numbers == {
        "n_layer": (12, 12), "n_vocab": (1000, 1000), "n_params": (pytest.approx(2.295e9), pytest.approx(2.305e9)),
        "tensor_bytes": (pytest.approx(1.245 * 2**30), pytest.approx(1.255 * 2**30)),
        "layers_offloaded": (13, 13), "layers_offloadable": (14, 14),
    }  # fmt: skip
    assert found.synthetic is True


@pytest.mark.parametrize(
    ("told", "least", "most"),
    [("134.52 M", 134.515e6, 134.525e6), ("7 B", 6.5e9, 7.5e9), ("900", 899.5, 900.5), ("1.5 K", 1450, 1550),
     ("1.05 T", 1.045e12, 1.055e12)],
)  # fmt: skip
def test_a_number_of_weights_in_every_unit(told: str, least: float, most: float) -> None:
    (found,) = models(packed(LINES.replace("2.30 B", told)))
    assert found.numbers["n_params"] == (pytest.approx(least), pytest.approx(most))


def test_each_loading_is_a_model_of_its_own_and_a_log_without_one_tells_of_none() -> None:
    other = LINES.replace("= 12\n", "= 7\n").replace("bool             = true", "bool             = false")
    first, second = models(packed("ggml: lines before\n" + LINES + other))
    assert (first.numbers["n_layer"], second.numbers["n_layer"]) == ((12, 12), (7, 7))
    assert (first.synthetic, second.synthetic) == (True, False)
    assert models(packed("srv  llama_server: initializing ...\n")) == ()


def test_what_another_version_does_not_print_is_left_out() -> None:
    (found,) = models(packed(LINES.splitlines(keepends=True)[0]))
    assert found == Loaded({}, {}, None)


def test_the_logs_of_the_reference_tell_what_the_headers_of_the_files_said() -> None:
    seen = 0
    for folder in whole_cells(REFERENCE):
        cell = read_cell(folder)
        assert isinstance(cell, StoredCell)
        if not cell.log.models:
            continue
        seen += 1
        model, first = cell.facts["model"], cell.log.models[0]
        if first.words["file_type"] == "F16":  # the copy of a head on F16 weights came first
            first = cell.log.models[1]
        for name, (least, most) in first.numbers.items():
            assert least <= model[name] <= most, (folder, name)
        assert model["description"].endswith(first.words["file_type"])
        assert model["architecture"] == first.words["architecture"]
        assert model["synthetic"] is first.synthetic
        assert cell.log.devices == {gpu["name"] for gpu in cell.env["machine"]["gpus"]}
        held = [one for one in (cell.facts.get("engine") or {}).values() if one]
        assert {(one["type_k"], one["type_v"]) for one in held} <= cell.log.caches
        assert {one["n_seq_max"] for one in held} <= cell.log.sequences
    assert seen > 60


def test_devices_and_contexts_of_a_log() -> None:
    text = """ggml_cuda_init: found 2 CUDA devices (Total VRAM: 10 MiB):
  Device 0: NVIDIA H200, compute capability 9.0, VMM: yes, VRAM: 143155 MiB
  Device 1: AMD Instinct MI50, gfx906:sramecc+:xnack- (0x906), VMM: no, Wave Size: 64
llama_context: n_seq_max             = 1
llama_kv_cache: size =   11.25 MiB (   512 cells,  30 layers,  1/1 seqs), K (f16):    5.62 MiB, V (q8_0):    5.62 MiB
llama_context: n_seq_max             = 12
"""
    found = engine_log(packed(text))
    assert found == EngineLog((), frozenset({"NVIDIA H200", "AMD Instinct MI50"}), frozenset({("f16", "q8_0")}),
                              frozenset({1, 12}))  # fmt: skip
