"""The GPU copy's arithmetic and errors on a stand-in runtime of known speed; the real one runs where there is a GPU."""

from __future__ import annotations

import time

import pytest

from bench.host import device_bandwidth
from bench.host.device_bandwidth import NoDevice, measure


class Runtime:
    """Copies at a known rate, in the host's time; `fails` names a call that returns 2."""

    def __init__(self, seconds_per_copy: float = 0.002, fails: str = "") -> None:
        self.fails, self.seconds, self.freed, self.copies = fails, seconds_per_copy, 0, 0

    def __getattr__(self, name: str):
        def call(*_):
            if name.endswith("Memcpy"):
                self.copies += 1
                time.sleep(self.seconds)
            self.freed += name.endswith("Free")
            return 2 if name == self.fails else 0

        return call


def absent(name: str):
    raise OSError(name)


def test_both_directions_of_a_copy_are_counted():
    runtime = Runtime()
    found = measure(repeats=3, load=lambda name: runtime)
    expected = 2 * device_bandwidth._BYTES / 0.002 / 1e9
    assert 0.5 * expected < found.read_gb_s <= expected
    assert found.read_gb_s == max(found.repeats)
    assert len(found.repeats) == 3
    assert runtime.freed == 2


def test_hip_is_found_where_cuda_is_not():
    def load(name):
        return absent(name) if "cuda" in name else Runtime(0.0005)

    assert measure(repeats=1, load=load).reader.startswith("hip")


def test_no_runtime_is_a_sentence():
    with pytest.raises(NoDevice, match="neither the CUDA nor the HIP"):
        measure(load=absent)


@pytest.mark.parametrize("call", ["cudaMalloc", "cudaMemcpy", "cudaDeviceSynchronize"])
def test_a_call_that_fails_is_named_and_memory_is_freed(call):
    runtime = Runtime(0.0, fails=call)
    with pytest.raises(NoDevice, match=f"{call} returned 2"):
        measure(repeats=1, load=lambda name: runtime)
    assert runtime.freed == (0 if call == "cudaMalloc" else 2)
