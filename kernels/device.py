"""The compiled library and the GPU behind it: memory, launches, graphs and their times. Knows no variant."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernels.errors import KernelError


class Args(c.Structure):
    """The same fields as src/args.h."""

    _fields_ = (
        *[(name, c.c_void_p) for name in ("w", "w2", "x", "x2", "y", "y2", "work")],
        ("bytes", c.c_int64),
        *[(name, c.c_int) for name in ("rows", "cols", "n", "format", "kind", "grid", "block")],
    )


@dataclass(frozen=True, slots=True)
class Facts:
    """What the device says of itself. `peak_gb_s`: bus width times memory clock, two transfers a clock."""

    name: str
    multiprocessors: int
    l2_bytes: int
    peak_gb_s: float
    arch: str
    driver: int


class Buffer:
    """Device memory that is freed with the object."""

    def __init__(self, device: Device, size: int) -> None:
        self.device, self.size = device, int(size)
        self.address = device.allocate(self.size)

    def fill(self, data: np.ndarray, offset: int = 0) -> None:
        """Copies an array of any shape (n, ..) to the device, `offset` bytes from the start. KernelError."""
        data = np.ascontiguousarray(data)
        self.device.check(self.device.lib.device_copy(self.address + offset, data.ctypes.data, data.nbytes))

    def repeat(self, source: Buffer, size: int) -> None:
        """Fills this buffer's first `size` bytes with `source` over and over."""
        for at in range(0, size, source.size):
            part = min(source.size, size - at)
            self.device.check(self.device.lib.device_copy(self.address + at, source.address, part))

    def poison(self, byte: int = 0xFF) -> None:
        """All ones is a NaN in every float format."""
        self.device.check(self.device.lib.device_fill(self.address, byte, self.size))

    def read(self, dtype: str, count: int) -> np.ndarray:
        """The first values of the buffer: `dtype` [count,]. KernelError."""
        out = np.empty(count, dtype)
        self.device.check(self.device.lib.device_copy(out.ctypes.data, self.address, out.nbytes))
        return out

    def free(self) -> None:
        """Gives the memory back. Calling twice is allowed."""
        if self.address:
            self.device.lib.device_free(self.address)
            self.address = 0

    def __del__(self) -> None:
        self.free()


class Timed:
    """A graph of several launches; `replay` gives the microseconds of one launch."""

    def __init__(self, device: Device, launcher: str, args: list[Args]) -> None:
        self.device, self.count, self.handle = device, len(args), c.c_void_p()
        array = (Args * len(args))(*args)
        device.check(device.lib.timed_create(device.launcher(launcher), array, len(args), c.byref(self.handle)))

    def replay(self) -> float:
        """Runs the graph; microseconds of one launch. KernelError when the GPU refuses."""
        us = c.c_float()
        self.device.check(self.device.lib.timed_replay(self.handle, c.byref(us)))
        return us.value / self.count

    def __del__(self) -> None:
        if self.handle:
            self.device.lib.timed_destroy(self.handle)


class Device:
    """The first GPU, through the library at `path`. Raises KernelError when there is none."""

    def __init__(self, path: Path) -> None:
        try:
            self.lib = c.CDLL(str(path))
        except OSError as error:
            raise KernelError(f"the kernel library {path} could not be loaded: {error}.") from error
        self._declare()
        count = c.c_int(0)
        status = self.lib.device_count(c.byref(count))
        if status != 0 or count.value == 0:
            raise KernelError("no GPU is visible to the kernels' runtime; run on a machine that has one.")
        self.facts = self._facts()

    def _declare(self) -> None:
        p, size = c.c_void_p, c.c_size_t
        self.lib.device_error.restype = c.c_char_p
        self.lib.peer_error.restype = c.c_char_p
        self.lib.peer_commit.restype = c.c_char_p
        self.lib.peer_activation_bytes.restype = c.c_int64
        signatures = {
            "device_alloc": [p, size],
            "device_free": [p],
            "device_copy": [p, p, size],
            "device_fill": [p, c.c_int, size],
            "device_memory": [p, p],
            "run_once": [p, p],
            "timed_create": [p, p, c.c_int, p],
            "timed_replay": [p, p],
            "timed_destroy": [p],
            "peer_open": [c.c_char_p, c.c_char_p],
        }
        for name, types in signatures.items():
            getattr(self.lib, name).argtypes = types

    def _facts(self) -> Facts:
        name, values = c.create_string_buffer(256), (c.c_int * 7)()
        self.check(self.lib.device_facts(name, 256, values))
        units, l2, khz, bits, major, minor, driver = values
        return Facts(name.value.decode(), units, l2, khz * 1e3 * 2 * bits / 8 / 1e9, f"sm_{major}{minor}", driver)

    def check(self, status: int) -> None:
        """KernelError, with the runtime's words, for any status but 0."""
        if status != 0:
            raise KernelError(f"the GPU answered with error {status}: {self.lib.device_error(status).decode()}.")

    def launcher(self, name: str) -> c.c_void_p:
        """Address of the library's function `launch_<name>`."""
        return c.cast(getattr(self.lib, f"launch_{name}"), c.c_void_p)

    def allocate(self, size: int) -> int:
        """Address of so many bytes on the device. KernelError when there is no room."""
        free, total, address = c.c_size_t(), c.c_size_t(), c.c_void_p()
        self.check(self.lib.device_memory(c.byref(free), c.byref(total)))
        if size > free.value:
            raise KernelError(
                f"{size / 1e9:.1f} GB of GPU memory are needed, "
                f"{free.value / 1e9:.1f} GB are free; choose a smaller shape."
            )
        self.check(self.lib.device_alloc(c.byref(address), size))
        return address.value or 0

    def run(self, launcher: str, args: Args) -> None:
        """One launch, waited for. KernelError when the GPU refuses."""
        self.check(self.lib.run_once(self.launcher(launcher), c.byref(args)))

    def array(self, data: np.ndarray) -> Buffer:
        """A buffer with a copy of an array (n, ..), at least 16 bytes long. KernelError when there is no room."""
        buffer = Buffer(self, max(data.nbytes, 16))
        buffer.fill(data)
        return buffer

    def open_peer(self, folder: Path) -> None:
        """llama.cpp's libraries; KernelError says what is missing."""
        base, cuda = folder / "libggml-base.so", folder / "libggml-cuda.so"
        if self.lib.peer_open(str(base).encode(), str(cuda).encode()) != 0:
            raise KernelError(f"llama.cpp's CUDA library in {folder} cannot be used: {self.lib.peer_error().decode()}.")

    def peer_commit(self) -> str:
        """llama.cpp's commit, as its own library reports it."""
        return str(self.lib.peer_commit().decode())
