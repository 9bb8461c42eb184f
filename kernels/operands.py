"""Random matrices and activations on the device, in the form each variant wants, and what must come out of it.

A large matrix repeats a set of random rows, and lies in memory several times over, so that launches can rotate through
more bytes than the cache holds. It knows no timing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels import layouts, planes, reference, variants
from kernels.device import Args, Buffer, Device
from kernels.layouts import FORMATS
from kernels.variants import Case

DISTINCT_ROWS = 1152  # nine groups of 128 rows: no power of two, so that rows mixed up do not go unseen
PEER = "llama.cpp"


class Matrix:
    """One weight matrix: `blocks` are its distinct rows as the file has them; each form is made when asked for."""

    def __init__(self, device: Device, name: str, rows: int, cols: int, copies: int, rng: np.random.Generator) -> None:
        self.device, self.name, self.rows, self.cols, self.copies = device, name, rows, cols, copies
        distinct = DISTINCT_ROWS if rows % 128 == 0 and rows > DISTINCT_ROWS else rows
        self.index = np.arange(rows) % distinct
        self.forms: dict[str, list[Buffer]] = {}
        if name in FORMATS:
            self.blocks = layouts.random_blocks(FORMATS[name], distinct, cols, rng)
            self.dense = [reference.dequantise(FORMATS[name], self.blocks, cols)]
        elif name == "SSQ":
            self.blocks = _random_ssq(distinct, cols, rng)
            self.dense = list(reference.ssq(self.blocks))
        else:
            self.blocks = rng.standard_normal((2, rows, cols)).astype(np.float16)
            self.dense = []

    def buffers(self, form: str) -> list[Buffer]:
        """`copies` buffers of this form: file, packed, planes, quants, scales."""
        if form not in self.forms:
            data = self._bytes(form)
            whole = self.name == "F16" or form == "planes"  # all rows are there, and need not be repeated
            with_rows = data.nbytes if whole else data.nbytes * self.rows // (self.index.max() + 1)
            source = self.device.array(data)
            self.forms[form] = [Buffer(self.device, with_rows) for _ in range(self.copies)]
            for buffer in self.forms[form]:
                buffer.repeat(source, with_rows)
        return self.forms[form]

    def _bytes(self, form: str) -> np.ndarray:
        if form == "file":
            return self.blocks.reshape(-1)
        if form == "packed":
            return layouts.pack(FORMATS[self.name], self.blocks, self.cols)
        if form == "planes":
            return planes.of_blocks(FORMATS[self.name], self.blocks[self.index], self.cols)
        part = self.blocks.reshape(-1, self.cols // 32, 34)
        return np.ascontiguousarray(part[..., 2:] if form == "quants" else part[..., :2]).reshape(-1)

    def expected(self, x: np.ndarray) -> np.ndarray:
        """What must come out for activations [n, cols]: float64 [n, rows]."""
        return reference.gemv(self.dense[0], x)[:, self.index]

    def free(self) -> None:
        """Give all forms back to the device."""
        for buffers in self.forms.values():
            for buffer in buffers:
                buffer.free()
        self.forms.clear()


def _random_ssq(rows: int, cols: int, rng: np.random.Generator) -> np.ndarray:
    blocks = rng.integers(0, 256, size=(rows, cols // 32, 68), dtype=np.uint8)
    blocks[..., :4] = (rng.uniform(0.5, 1.5, size=(rows, cols // 32, 2)) * 1e-3).astype("<f2").view(np.uint8)
    return blocks


@dataclass
class Launch:
    """What a case needs to be launched and judged: one set of arguments for each copy of the matrix."""

    launcher: str
    args: list[Args]
    output: Buffer
    expected: np.ndarray
    dtype: str
    kept: list[Buffer]  # so that nothing is freed while it may be launched

    def error(self, device: Device) -> float:
        """Poisons the output, launches once, compares with the oracle: the relative error. KernelError."""
        self.output.poison()
        device.run(self.launcher, self.args[0])
        return self.compare(self.output.read(self.dtype, self.expected.size).reshape(self.expected.shape))

    def compare(self, out: np.ndarray) -> float:
        """Relative error of an output in the shape of `expected`, [n, rows]; of whole numbers, the share that differs.
        """
        if self.dtype == "i4":
            return float((out != self.expected).mean())
        return reference.relative_error(out, self.expected)


def launch(device: Device, matrix: Matrix, case: Case, rng: np.random.Generator) -> Launch:
    """Fresh activations for `case`, quantised on the device where the variant wants that."""
    build = {"flat": _flat, "ssq": _ssq, "native": _native, "planes": _planes, "packed": _packed, "decode": _decode,
             "read": _read}  # fmt: skip
    return build[case.variant.launcher](device, matrix, case, rng)


def _floats(matrix: Matrix, case: Case, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((case.streams, matrix.cols)).astype(np.float32)


def _common(matrix: Matrix, case: Case, **more: int) -> Args:
    code = FORMATS[case.format].code if case.format in FORMATS else 0
    return Args(rows=matrix.rows, cols=matrix.cols, n=case.streams, format=code, kind=case.variant.kind, **more)


def _for_each(base: Args, **fields: list[Buffer]) -> list[Args]:
    """Copies of `base`, one for each buffer of the fields."""
    out = []
    for i in range(len(next(iter(fields.values())))):
        args = Args.from_buffer_copy(base)
        for name, buffers in fields.items():
            setattr(args, name, buffers[i].address)
        out.append(args)
    return out


def _plain(device: Device, x: Buffer, cols: int, n: int) -> tuple[Buffer, Buffer]:
    quants, scales = Buffer(device, n * cols), Buffer(device, n * cols // 32 * 8)
    device.run("quantise", Args(x=x.address, y=quants.address, y2=scales.address, cols=cols, n=n, kind=0))
    return quants, scales


def _flat(device: Device, matrix: Matrix, case: Case, rng: np.random.Generator) -> Launch:
    x = _floats(matrix, case, rng)
    form = case.variant.activations
    expected = matrix.expected(np.ones((1, matrix.cols)) if form == "none" else x)
    given = device.array(x.T.copy() if form == "interleaved" else x)
    y = Buffer(device, expected.size * 4)
    base, kept = _common(matrix, case, x=given.address, y=y.address), [given]
    if form == "plain":
        quants, scales = _plain(device, given, matrix.cols, case.streams)
        base.x, base.x2 = quants.address, scales.address
        kept += [quants, scales]
    args = _for_each(base, w=matrix.buffers("quants"), w2=matrix.buffers("scales"))
    return Launch("flat", args, y, expected, "f4", kept)


def _native(device: Device, matrix: Matrix, case: Case, rng: np.random.Generator) -> Launch:
    x = _floats(matrix, case, rng)
    expected, given = matrix.expected(x), device.array(x)
    y = Buffer(device, expected.size * 4)
    quants, scales = _plain(device, given, matrix.cols, case.streams)
    base = _common(matrix, case, x=quants.address, x2=scales.address, y=y.address)
    return Launch("native", _for_each(base, w=matrix.buffers("file")), y, expected, "f4", [given, quants, scales])


def _planes(device: Device, matrix: Matrix, case: Case, rng: np.random.Generator) -> Launch:
    x = _floats(matrix, case, rng)
    expected, given, blocks = matrix.expected(x), device.array(x), case.streams * matrix.cols // 32
    y = Buffer(device, expected.size * 4)
    quants, scales, sums = Buffer(device, blocks * 32), Buffer(device, blocks * 4), Buffer(device, blocks * 8)
    made = Args(x=given.address, y=quants.address, y2=scales.address, work=sums.address, kind=2)
    made.cols, made.n = matrix.cols, case.streams
    device.run("quantise", made)
    base = _common(matrix, case, x=quants.address, x2=scales.address, work=sums.address, y=y.address)
    kept = [given, quants, scales, sums]
    return Launch("planes", _for_each(base, w=matrix.buffers("planes")), y, expected, "f4", kept)


def _packed(device: Device, matrix: Matrix, case: Case, rng: np.random.Generator) -> Launch:
    x = _floats(matrix, case, rng)
    expected, given = matrix.expected(x), device.array(x)
    y = Buffer(device, expected.size * 4)
    chunks = Buffer(device, variants.activation_bytes(case.variant, matrix.cols, case.streams))
    device.run("quantise", Args(x=given.address, y=chunks.address, cols=matrix.cols, n=case.streams, kind=1))
    base = _common(matrix, case, x=chunks.address, y=y.address)
    base.block = 32 * variants.warps(case, device.facts.multiprocessors)
    kept = [given, chunks]
    return Launch("packed", _for_each(base, w=matrix.buffers("packed")), y, expected, "f4", kept)


def _ssq(device: Device, matrix: Matrix, case: Case, rng: np.random.Generator) -> Launch:
    x = _floats(matrix, case, rng)
    expected = np.stack([reference.gemv(w, row[None])[0] for w, row in zip(matrix.dense, x, strict=True)])[
        :, matrix.index
    ]
    given, y = device.array(x), Buffer(device, expected.size * 4)
    base = _common(matrix, case, x=given.address, x2=given.address + matrix.cols * 4, y=y.address)
    base.y2 = y.address + matrix.rows * 4
    return Launch("ssq", _for_each(base, w=matrix.buffers("file")), y, expected, "f4", [given])


def _read(device: Device, matrix: Matrix, case: Case, rng: np.random.Generator) -> Launch:
    """The warps leave the xor of what they read; the last bytes that fill no load of 16 are read by nobody."""
    size = variants.weight_bytes(case.format, matrix.rows, matrix.cols)
    grid, block = read_shape(size)
    y = Buffer(device, grid * block // 32 * 4)
    odd = np.bincount(matrix.index) % 2 == 1  # a row that is there twice cancels itself
    expected = np.bitwise_xor.reduce(matrix.blocks.view("<u2")[odd], axis=None, keepdims=True)
    base = Args(y=y.address, bytes=size // 16 * 16, grid=grid, block=block, kind=case.variant.kind)
    return ReadLaunch("read", _for_each(base, w=matrix.buffers("file")), y, expected, "u4", [])


class ReadLaunch(Launch):
    """A plain read is right when the xor of all 16-bit words that it read is that of the matrix."""

    def error(self, device: Device) -> float:
        """0.0 when the words agree, else 1.0. KernelError when the GPU refuses."""
        self.output.poison()
        device.run(self.launcher, self.args[0])
        out = np.bitwise_xor.reduce(self.output.read("u2", self.output.size // 2))
        return float(out != self.expected.reshape(-1)[0])


def read_shape(size: int) -> tuple[int, int]:
    """Blocks and threads of a plain read of `size` bytes: eight loads of 16 bytes a thread, all at once."""
    return max(1, size // (512 * 8 * 16)), 512


def _decode(device: Device, matrix: Matrix, case: Case, rng: np.random.Generator) -> Launch:
    name = case.variant.name
    if name == "twin_scores":
        q = rng.standard_normal((2, matrix.cols)).astype(np.float32)
        expected, queries = reference.twin_scores(q, matrix.blocks), device.array(q)
        y = Buffer(device, expected.size * 4)
        base = _common(matrix, case, x=queries.address, y=y.address)
        return Launch("decode", _for_each(base, w=matrix.buffers("file")), y, expected, "f4", [queries])
    logits = [rng.standard_normal((case.streams, matrix.cols)).astype(np.float32) * 4 for _ in range(matrix.copies)]
    given = [device.array(each) for each in logits]
    work = Buffer(device, case.streams * 64 * 8)
    if name == "softmax":
        expected = reference.softmax(logits[0])
        y = Buffer(device, expected.size * 4)
        return Launch(
            "decode",
            _for_each(_common(matrix, case, y=y.address, work=work.address), x=given),
            y,
            expected,
            "f4",
            [*given, work],
        )
    tokens, _ = reference.verify(logits[0], np.zeros(case.streams - 1, np.int64))
    drafts = tokens[:-1].astype(np.int32)
    if len(drafts) > 1:
        drafts[-1] += 1
    _, accepted = reference.verify(logits[0], drafts)
    y, held = Buffer(device, (case.streams + 1) * 4), device.array(drafts)
    base = _common(matrix, case, y=y.address, y2=y.address + case.streams * 4, w2=held.address)
    base.work = work.address
    return Launch("decode", _for_each(base, x=given), y, np.append(tokens, accepted), "i4", [*given, held, work])


def peer_launch(device: Device, matrix: Matrix, streams: int, rng: np.random.Generator) -> Launch:
    """llama.cpp's mul_mat_vec_q on the same matrix, its activations quantised by llama.cpp."""
    x = rng.standard_normal((streams, matrix.cols)).astype(np.float32)
    expected, given = matrix.expected(x), device.array(x)
    y = Buffer(device, expected.size * 4)
    held = Buffer(device, device.lib.peer_activation_bytes(matrix.cols, streams))
    base = Args(
        rows=matrix.rows, cols=matrix.cols, n=streams, format=FORMATS[matrix.name].code, x=given.address, y=held.address
    )
    device.run("peer_quantise", base)
    base.x, base.y = held.address, y.address
    return Launch("peer", _for_each(base, w=matrix.buffers("file")), y, expected, "f4", [given, held])
