"""The same weights at fewer bits, or in F16, made once by llama.cpp's own quantiser and kept in the user's cache.

A twin's name is the hash of its source, its kind and the engine's build, so that none of them can change behind it. It
is written in a process of its own, which an interrupt ends at once, and renamed when it is whole. Rows that a kind's
blocks do not divide fall back to other types, as llama.cpp has them; how many bytes are saved is read from the result.
It knows nothing about drafting, and nothing about how good a twin is.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pti_loop.engine import EngineError
from pti_loop.gguf import file as gguf_file
from pti_loop.gguf.file_hash import cache_dir
from pti_loop.gguf.header import TENSOR_TYPES, ModelFileError
from pti_loop.llama.library import build

KINDS = {
    "q2_k": 10, "q3_k_s": 11, "q3_k_m": 12, "q4_0": 2, "q4_1": 3, "q4_k_s": 14, "q4_k_m": 15, "q5_0": 8, "q5_k_m": 17,
    "q6_k": 18, "q8_0": 7,
}  # fmt: skip
"""Name -> llama.cpp's file type. Kinds that need an importance matrix are left out."""
WIDE = "f16"
"""The kind whose arithmetic rounds no activation to a few bits; it takes more bytes than what it is made from."""
_FILE_TYPES = KINDS | {WIDE: 1}
TABLES = {name.lower(): number for number, (name, block, _) in TENSOR_TYPES.items() if block > 1}
"""Types that the table of words and the output matrix may be given beside the kind's own choice, often 6 or 8 bits."""
_PLANNED = re.compile(r"model size\s+=\s+([\d.]+) MiB.*?quant size\s+=\s+([\d.]+) MiB", re.DOTALL)
CHILD = """import sys
from pti_loop.load_first import load_first
load_first()
from pti_loop.llama.twin_file import quantise
sys.exit(quantise(*sys.argv[1:]))"""
"""The program of the process that quantises: with the library loaded first, which no import of this module allows."""
_MIB = 1024 * 1024


def silent(sentence: str) -> None:
    """Says nothing."""


def twin(path: Path, kind: str, say: Callable[[str], None] = silent, threads: int = 0) -> Path:
    """The file of the twin of `path`, made on the first call; `say` hears one sentence when that begins.

    `kind` is one of `KINDS`, or with a type for the table of words and the output matrix, `q2_k+q4_0`. A small model
    with one table for both reads a third of its bytes there. `threads` 0 means all cores that this process may use.
    Raises `EngineError` for an unknown kind, a kind that saves no bytes, a source that cannot be read, a cache without
    room, and what the quantiser refuses.
    """
    kind = kind.lower()
    if kind.partition("+")[0] not in KINDS:
        raise EngineError(f"there is no twin of kind '{kind.partition('+')[0]}'; kinds are {', '.join(KINDS)}")
    _types(kind)
    return _kept(path, kind, say, threads)


def widened(path: Path, say: Callable[[str], None] = silent, threads: int = 0) -> Path:
    """The same weights in F16, made and kept as a twin is. Raises `EngineError` as `twin` does."""
    return _kept(path, WIDE, say, threads)


def wide_bytes(file: gguf_file.GgufFile) -> int:
    """Bytes of the tensors of `widened`, told from the header alone: rows of one dimension stay in four bytes."""
    return sum(tensor.elements * (2 if len(tensor.shape) > 1 else 4) for tensor in file.tensors)


def _kept(path: Path, kind: str, say: Callable[[str], None], threads: int) -> Path:
    """The file of a kind in the cache, made where it is not there."""
    try:
        source = gguf_file.read(path)
        folder = cache_dir() / "twins"
        name = f"{source.sha256()[:16]}.{kind}.{build()['llama_cpp_commit'][:12]}"
    except ModelFileError as error:
        raise EngineError(str(error)) from error
    whole = folder / f"{name}.gguf"
    if whole.exists():
        return whole
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / f"{name}.lock") as lock:
            if not whole.exists():
                _make(source, kind, whole, lock, say, threads or len(os.sched_getaffinity(0)))
    except OSError as error:
        raise EngineError(f"{whole} cannot be written ({error.strerror}); set XDG_CACHE_HOME elsewhere") from error
    return whole


def _types(kind: str) -> tuple[int, int | None]:
    """llama.cpp's file type, and the tensor type of the tables where one is given."""
    own, plus, table = kind.partition("+")
    if plus and table not in TABLES:
        raise EngineError(f"a twin's table cannot be of type '{table}'; types are {', '.join(TABLES)}")
    return _FILE_TYPES[own], TABLES[table] if plus else None


def bytes_ratio(path: Path, other: Path) -> float:
    """Bytes that a step of one token reads of `other`, over those of `path`: a twin's share of its source."""
    return gguf_file.read(other).step_bytes / gguf_file.read(path).step_bytes


@contextmanager
def _alone(lock: Path) -> Iterator[int]:
    """One maker of one twin at a time; the second waits and then finds it made. Yields the lock's descriptor."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _make(source: gguf_file.GgufFile, kind: str, whole: Path, lock: int, say: Callable[[str], None],
          threads: int) -> None:
    """Plan, make and rename. The child inherits the lock, so that not even a killed maker leaves a second writer."""
    part = whole.with_suffix(".part")
    try:
        before, after = _plan(source, kind, _child(source.path, part, kind, threads, lock, plan=True))
        free = shutil.disk_usage(whole.parent).free
        if after > free:
            raise EngineError(f"a {kind} twin of {source.path} takes {after / 1e6:.0f} MB and {whole.parent} has "
                              f"{free / 1e6:.0f} MB free; set XDG_CACHE_HOME elsewhere")  # fmt: skip
        say(f"making a {kind} twin of {source.path.name}, {before / 1e6:.0f} MB to {after / 1e6:.0f} MB, once: {whole}")
        _child(source.path, part, kind, threads, lock, plan=False)
        os.replace(part, whole)
    finally:
        part.unlink(missing_ok=True)


def _plan(source: gguf_file.GgufFile, kind: str, log: str) -> tuple[float, float]:
    """Bytes of all tensors before and after, from a trial without writing. Raises `EngineError` when none is saved."""
    found = _PLANNED.search(log)
    if not found:
        raise EngineError(f"llama.cpp does not say how large a {kind} twin of {source.path} would be: {_last(log)}")
    before, after = (float(size) * _MIB for size in found.groups())
    if after >= before and kind != WIDE:
        raise EngineError(f"a {kind} twin of {source.path} would take {after / 1e6:.1f} MB, the source takes "
                          f"{before / 1e6:.1f} MB; a twin has fewer bytes, so choose a kind of fewer bits")  # fmt: skip
    return before, after


def _child(source: Path, part: Path, kind: str, threads: int, lock: int, plan: bool) -> str:
    """Run the quantiser in a process of its own; returns its log. It ends when this process does."""
    command = [sys.executable, "-c", CHILD, str(source.absolute()), str(part.absolute()), kind,
               str(threads), str(int(plan))]  # fmt: skip
    # Leaving the block closes the child's standard input, which ends it, also when this process is interrupted.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          pass_fds=[lock], cwd=Path(__file__).resolve().parents[2], text=True,
                          errors="replace") as child:  # fmt: skip
        assert child.stdout, "it was asked for as a pipe"
        log = child.stdout.read()
    if child.returncode:
        raise EngineError(f"llama.cpp makes no {kind} twin of {source}: {_last(log)}")
    return log


def _last(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def quantise(source: str, part: str, kind: str, threads: str, plan: str) -> int:
    """The child's work. The library writes its log to standard error, where the parent reads it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in a background job, and too late an answer in the library
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from llama_cpp import llama_cpp as lib

    def to_parent(level: int, text: bytes, _user: object) -> None:
        sys.stderr.buffer.write(text)

    callback = lib.llama_log_callback(to_parent)  # held, since llama.cpp does not
    lib.llama_log_set(callback, None)
    lib.llama_backend_init()
    params = lib.llama_model_quantize_default_params()
    params.nthread, params.allow_requantize, params.dry_run = int(threads), True, plan == "1"
    params.ftype, table = _types(kind)
    if table is not None:
        params.token_embedding_type = params.output_tensor_type = table
    return int(lib.llama_model_quantize(source.encode(), part.encode(), ctypes.byref(params)))


def _end_with_parent() -> None:
    """Standard input is the parent's and says nothing: its end is the parent's."""
    os.read(0, 1)  # not sys.stdin, whose lock would be held when the interpreter ends
    os._exit(1)
