"""What a cell says of its model: where each comparison begins to tell, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from bench.judge.invariants import inputs, model, settings
from bench.records.engine_log import EngineLog, Loaded
from tests.judge.judge_cells import Cell, case_of, guess_cell

MODEL = {"name": "toy", "sha256": "ab", "architecture": "llama", "description": "llama 1B Q4_1", "quantization": "Q4_1",
         "n_params": 1000_000_000, "tensor_bytes": 700_000_000, "step_bytes": 600_000_000, "file_bytes": 701_000_000,
         "n_vocab": 1000, "n_layer": 10, "layers_offloaded": 0, "layers_offloadable": 11, "memory": "hybrid",
         "memory_note": "", "kv_bytes_per_token": 1000, "state_bytes_per_sequence": 5000}  # fmt: skip
HEAD = 4 << 20


def cell_of(**values: Any) -> Cell:
    cell = guess_cell()
    cell.facts["model"] = MODEL | values
    for name in ("baseline", "treatment"):
        cell.facts["engine"][name] |= {"n_layer": 10, "layers_offloaded": 0, "n_ctx": 512, "n_seq_max": 1,
                                       "kv_bytes": 512_000, "state_bytes": 5000}  # fmt: skip
    cell.facts["bandwidth"] |= {"bytes": 192 << 20, "cache_bytes": 32 << 20}
    return cell


def fits(**values: Any) -> str | None:
    return model.model_fits_itself(case_of(cell_of(**values)))


def test_a_model_that_fits_itself_says_nothing() -> None:
    assert fits() is None


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"step_bytes": 700_000_000}, None),
        ({"step_bytes": 700_000_001}, "a step is said to read 700000001 bytes, and the tensors have 700000000"),
        ({"step_bytes": None, "tensor_bytes": 701_000_000}, None),
        ({"tensor_bytes": 701_000_001}, "the tensors are said to have 701000001 bytes, and their file 701000000"),
        ({"file_bytes": 700_000_000 + 512_000 + HEAD}, None),
        ({"file_bytes": 700_000_001 + 512_000 + HEAD},
         f"the file is said to have {700_000_001 + 512_000 + HEAD} bytes, {512_001 + HEAD} more than its tensors, and "
         f"a vocabulary of 1000 tokens takes no more than {512_000 + HEAD}"),
        ({"file_bytes": 2 * 10**9, "n_vocab": None}, None),
    ],
)  # fmt: skip
def test_bytes_of_a_step_of_tensors_and_of_a_file(values: dict[str, Any], told: str | None) -> None:
    assert fits(**values) == told


@pytest.mark.parametrize(
    ("bytes_", "name", "description", "wrong"),
    [
        # Three quarters of four bits a weight are 375 MB, twice four and three 1375 MB.
        (375_000_000, "Q4_1", "llama 1B Q4_1", False), (374_900_000, "Q4_1", "llama 1B Q4_1", True),
        (1_375_000_000, "Q4_1", "llama 1B Q4_1", False), (1_375_100_000, "Q4_1", "llama 1B Q4_1", True),
        (1_500_000_000, "Q4_1", "llama 1B Q4_1", True), (2_000_000_000, "F16", "llama 1B F16", False),
        (1_499_000_000, "F16", "llama 1B F16", True), (4_000_000_000, "all", "llama 1B all", False),
        (4_000_000_000, "Q4_1 as float32", "llama 1B Q4_1", False), (200_000_000, "IQ1_S", "", False),
        (90_000_000, "IQ1_S", "", True), (600_000_000, "MXFP4", "", False), (4_000_000_000, "BF16", "", False),
    ],
)  # fmt: skip
def test_bits_a_weight_against_the_name_of_the_mixture(bytes_: int, name: str, description: str, wrong: bool) -> None:
    told = fits(tensor_bytes=bytes_, step_bytes=350_000_000 if bytes_ > 350_000_000 else None, file_bytes=bytes_,
                quantization=name, description=description)  # fmt: skip
    assert (told is not None) == wrong, told
    assert not wrong or told == (f"{bytes_} bytes for 1000000000 weights are {bytes_ * 8e-9:.2f} bits a weight, and "
                                 f"the file is said to be {name}")  # fmt: skip


@pytest.mark.parametrize(
    ("description", "quantization", "told"),
    [
        ("qwen3 1B Q4_1", "Q4_1", "the engine calls the model 'qwen3 1B Q4_1', and its architecture is llama"),
        ("llama 1B Q4_K - Medium", "Q4_K_M", None), ("llama ?B IQ4_XS - 4.25 bpw", "IQ4_XS", None),
        ("llama 1B all F32", "Q4_1", "the engine calls the model 'llama 1B all F32', and its quantization is Q4_1"),
        ("llama 1B Q5_0", "Q4_1", "the engine calls the model 'llama 1B Q5_0', and its quantization is Q4_1"),
        ("llama 1B Q5_0", "other", "the engine calls the model 'llama 1B Q5_0', and its quantization is other"),
        ("llama 1B Q5_0 (guessed)", "Q4_1", None), ("llama 1B Q4_1", "Q4_1 as float32", None),
        ("llama 1B", "Q4_1", None),
        ("llama 1B BF16", "Q4_1", "the engine calls the model 'llama 1B BF16', and its quantization is Q4_1"),
        ("", "Q4_1", None),
    ],
)  # fmt: skip
def test_what_the_engine_calls_it(description: str, quantization: str, told: str | None) -> None:
    assert fits(description=description, quantization=quantization) == told


def in_context(arm: str = "baseline", rows: list[dict[str, Any]] | None = None, own: dict[str, Any] | None = None,
               **values: Any) -> str | None:  # fmt: skip
    cell = cell_of(**(own or {}))
    cell.facts["engine"].setdefault(arm, {}).update(values)
    cell.facts.update({"memory_by_streams": rows} if rows else {})
    return model.model_fits_itself(case_of(cell))


def test_layers_of_the_model_and_of_its_contexts() -> None:
    assert fits(layers_offloaded=12) == "12 layers are said to be offloaded, and 11 can be"
    assert fits(layers_offloadable=10) == (
        "10 layers are said to be offloadable, and the model has 10 beside its output")  # fmt: skip
    assert in_context(n_layer=9) == "the context of baseline has n_layer 9, and the model 10"
    assert in_context("again", layers_offloaded=3) == "the context of again has layers_offloaded 3, and the model 0"
    assert in_context(n_vocab=999) == "the context of baseline has n_vocab 999, and the model 1000"
    assert in_context("treatment", n_layer=9) is None, "a build on trial may count otherwise"
    assert fits(layers_offloaded=None, n_layer=None) is None


def test_caches_of_the_model_and_of_its_contexts() -> None:
    assert in_context(kv_bytes=517_000, state_bytes=5040) is None, "logs round to a hundredth of a MiB"
    assert in_context(kv_bytes=518_000) == (
        "the context of baseline holds kv_bytes 518000, and the bytes of the model make 512000")  # fmt: skip
    assert in_context(state_bytes=4940) == (
        "the context of baseline holds state_bytes 4940, and the bytes of the model make 5000")  # fmt: skip
    assert in_context(snapshots=7, state_bytes=40_000) is None
    assert in_context(kv_bytes=1, own={"memory_note": "sliding windows"}) is None
    assert in_context("treatment", kv_bytes=1) is None, "a treatment may cache in another format"
    row = {"streams": 3, "n_ctx": 512, "kv_bytes": 1_536_000, "state_bytes": 15_000}
    assert in_context(rows=[row]) is None
    assert in_context(rows=[row | {"kv_bytes": 512_000}]) == (
        "the context of 3 streams holds kv_bytes 512000, and the bytes of the model make 1536000")  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "token", "state", "wrong"),
    [("hybrid", 1000, 5000, False), ("hybrid", 0, 5000, True), ("attention", 1000, 5000, True),
     ("recurrent", 1000, 5000, True), ("another", 1000, 5000, False), ("attention", None, 5000, False)],
)  # fmt: skip
def test_the_kind_of_memory(memory: str, token: int | None, state: int, wrong: bool) -> None:
    told = fits(memory=memory, kv_bytes_per_token=token, state_bytes_per_sequence=state)
    assert (told is not None) == wrong
    assert not wrong or told == (f"its memory is said to be {memory}, with {token} bytes a token and {state} bytes a "
                                 "sequence")  # fmt: skip


@pytest.mark.parametrize(
    ("step", "read", "wrong"),
    [(600_000_000, 192 << 20, False), (600_000_000, 196_000_000, True), (600_000_000, (192 << 20) + 1, False),
     (96_576_768, 96_575_488, False), (96_576_768, 96_576_769, True), (96_576_768, 95_000_000, True),
     (1_000_000, 64 << 20, False), (1_000_000, (64 << 20) + 1, True), (None, 5, False)],
)  # fmt: skip
def test_the_buffer_that_the_memory_was_read_in(step: int | None, read: int, wrong: bool) -> None:
    cell = cell_of(step_bytes=step)
    cell.facts["bandwidth"]["bytes"] = read
    told = model.model_fits_itself(case_of(cell))
    assert told == (f"a step is said to read {step} bytes, and the memory was read in a buffer of {read}" if wrong
                    else None)  # fmt: skip
    cell.facts["bandwidth"]["cache_bytes"] = 0
    assert model.model_fits_itself(case_of(cell)) is None, "a device's is read in buffers of one size"


def configured(own: dict[str, Any], config: dict[str, Any]) -> str | None:
    cell = cell_of(**own)
    cell.config.update(config)
    return model.model_is_configured(case_of(cell))


def test_name_and_weights_are_those_of_the_configuration() -> None:
    assert configured({}, {"weights": "ab"}) is None
    assert configured({}, {"weights": "cd"}) == "cell.yaml says sha256 cd of the model, and facts.json ab"
    assert configured({"sha256": ""}, {"weights": "cd"}) is None
    assert configured({"name": "other"}, {}) == "cell.yaml says name toy of the model, and facts.json other"
    random = {"model": {"name": "toy", "synthetic": True}}
    assert configured({"synthetic": True}, random) is None
    assert configured({"synthetic": False}, random) == (
        "cell.yaml says synthetic True of the model, and facts.json False")  # fmt: skip
    assert configured({}, random) is None


LOG = Loaded({"n_layer": (10, 10), "n_params": (0.995e9, 1.005e9)}, {"architecture": "llama", "file_type": "Q4_1"},
             False)  # fmt: skip
OTHER = Loaded({"n_layer": (3, 3)}, {"architecture": "bert", "file_type": "F16"}, True)


def logged(*loaded: Loaded, **values: Any) -> str | None:
    cell = cell_of(**values)
    cell.__dict__["log"] = EngineLog(loaded)
    return model.model_is_the_logs(case_of(cell))


def test_one_of_the_models_of_the_log_is_the_cells() -> None:
    assert logged() is None
    assert logged(LOG) is None and logged(OTHER, LOG) is None
    assert logged(OTHER) == "llama.cpp loaded a model of n_layer 3, and facts.json has 10"
    assert logged(LOG, n_params=1_005_000_001) == (
        "llama.cpp loaded a model of n_params 9.95e+08 to 1.005e+09, and facts.json has 1005000001")  # fmt: skip
    assert logged(LOG, n_params=1_005_000_000) is None and logged(LOG, n_params=995_000_000) is None
    assert logged(LOG, architecture="bert") == "llama.cpp loaded a model of architecture llama, and facts.json has bert"
    assert logged(LOG, description="llama 1B Q5_0") == (
        "llama.cpp loaded a model of description Q4_1, and facts.json has llama 1B Q5_0")  # fmt: skip
    assert logged(LOG, synthetic=True) == (
        "llama.cpp loaded weights that nobody drew, and facts.json says synthetic True")  # fmt: skip
    assert logged(Loaded({}, {}, True), synthetic=False) == (
        "llama.cpp loaded random weights, and facts.json says synthetic False")  # fmt: skip
    assert logged(Loaded({}, {}, True)) is None, "a record that says nothing of it"
    assert logged(Loaded(), synthetic=True) is None


def contexts(log: EngineLog, **treatment: Any) -> str | None:
    cell = cell_of()
    cell.__dict__["log"] = log
    cell.facts["engine"]["treatment"].update(treatment)
    return model.contexts_are_the_logs(case_of(cell))


def test_contexts_are_among_those_of_the_log() -> None:
    log = EngineLog(caches=frozenset({("f16", "f16"), ("q8_0", "f16")}), sequences=frozenset({1, 4}))
    assert contexts(log) is None and contexts(EngineLog()) is None
    assert contexts(log, type_k="q8_0", n_seq_max=4) is None
    assert contexts(log, type_v="q8_0") == (
        "the context of treatment caches f16/q8_0, and llama.cpp made contexts that cache f16/f16, "
        "q8_0/f16")  # fmt: skip
    assert contexts(log, n_seq_max=3) == (
        "the context of treatment holds 3 sequences, and llama.cpp made contexts for 1, 4")  # fmt: skip
    assert contexts(log, type_k=None, n_seq_max=None) is None
    assert contexts(EngineLog(sequences=frozenset({2}))) is not None
    assert contexts(EngineLog(caches=frozenset({("f16", "f16")})), n_seq_max=3) is None


@pytest.mark.parametrize(
    ("devices", "gpus", "told"),
    [
        ((), [{"name": "A"}], None), (("A",), [{"name": "A"}, {"name": "B"}], None),
        (("A", "C"), [{"name": "A"}, {"name": "B"}], "llama.cpp found the GPU C, and env.json lists A, B"),
        (("A",), [], "llama.cpp found the GPU A, and env.json lists none"), (("A",), None, None),
    ],
)  # fmt: skip
def test_gpus_of_the_log_are_those_of_the_machine(devices: tuple[str, ...], gpus: Any, told: str | None) -> None:
    cell = cell_of()
    cell.__dict__["log"] = EngineLog(devices=frozenset(devices))
    cell.env["machine"] = {"name": "box"} | ({} if gpus is None else {"gpus": gpus})
    assert inputs.machines_agree(case_of(cell)) == told


@pytest.mark.parametrize(
    ("used", "tried", "wrong"),
    [
        ("rewind", [("rewind", True)], False), ("rewind", [("rewind", False)], True),
        ("snapshots", [("rewind", False), ("snapshots", True)], False),
        ("snapshots", [("rewind", True), ("checkpoint", True)], True), ("rewind", [], False), (None, [], False),
    ],
)  # fmt: skip
def test_a_rollback_passed_its_probe(used: str | None, tried: list[tuple[str, bool]], wrong: bool) -> None:
    cell = cell_of()
    cell.facts["rollback"] = {"strategy": used, "tried": [{"strategy": name, "passed": one} for name, one in tried]}
    told = f"rejected tokens were forgotten by {used}, which no probe saw restore the state" if wrong else None
    assert settings.rollback_was_seen(case_of(cell)) == told
