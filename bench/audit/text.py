"""Bytes that somebody else wrote, read with bounds and turned into lines of text. It knows no record format.

A file is refused with one sentence where it cannot be text. What a terminal, a forum or an editor has added to text
(byte order marks, UTF-16, colours, control characters) is taken off here, once.
"""

from __future__ import annotations

import codecs
import gzip
import re
import stat
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from bench.errors import UserError

STDIN = "-"
WHAT = (
    "paste the output of a benchmark tool, a server's log, a profiler's table or a CSV; docs/audit.md lists the tools"
)
MAX_TEXT = 64 * 1024 * 1024
"""Above this a pasted text is not read: what people post is a few kilobytes. Ledgers are streamed and have no limit."""
HEAD = 64 * 1024
IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"RIFF", b"II*\0", b"MM\0*")
PACKED = {b"PK\x03\x04": "unzip", b"\xfd7zX": "xz -d", b"BZh": "bunzip2", b"\x28\xb5\x2f\xfd": "zstd -d"}
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_BARS = str.maketrans({"│": "|", "┃": "|", "║": "|", "\u00a0": " ", "\u2212": "-"})


@dataclass(frozen=True)
class Source:
    """A text and where it is from; `name` is a path, or `-`."""

    name: str
    text: str
    notes: tuple[str, ...] = ()


def read_source(path: Path | str) -> Source:
    """The text of a file, or of standard input for `-`. UserError where there is nothing to judge."""
    name = str(path)
    raw = _stdin() if name == STDIN else _bounded(Path(path))
    return source_of(name, raw)


def source_of(name: str, raw: bytes) -> Source:
    """The text in some bytes, after the refusals."""
    _refuse(name, raw)
    text, notes = _decode(name, raw)
    head = text.lstrip()[:200].lower()
    if head.startswith(("<!doctype", "<html", "<?xml")):
        raise UserError(f"{name}: is a web page, not a record; copy the text out of it, or download the raw file")
    return Source(name, _ESCAPES.sub("", text), notes)


def lines_of(text: str) -> list[str]:
    """The lines of a text without what cannot be seen. Only line feeds end a line, as in every editor's numbering."""
    return [_UNSEEN.sub("", line.rstrip().rsplit("\r", 1)[-1]).translate(_BARS).rstrip() for line in text.split("\n")]


def check_file(path: Path) -> None:
    """UserError for what is no ordinary file: reading a pipe or a device may never end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; {WHAT}") from error
    except (OSError, ValueError) as error:
        raise UserError(f"{path!s}: cannot be looked at ({error})") from error
    if stat.S_ISREG(mode):
        return
    kinds = (
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISDIR, "a folder"),
    )
    kind = next((word for test, word in kinds if test(mode)), "no ordinary file")
    raise UserError(f"{path}: is {kind}, not a file; to read what a program prints: PROGRAM | python -m bench audit -")


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, gzip undone as they are read. UserError where it may not be read."""
    check_file(path)
    try:
        file = path.open("rb")
    except OSError as error:
        raise UserError(f"{path}: may not be read ({error.strerror}); run: chmod u+r {path}") from error
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    if not packed:
        return file
    file.close()
    return cast(IO[bytes], gzip.open(path, "rb"))


def head_of(path: Path) -> bytes:
    """The first bytes of a file, unpacked."""
    with opened(path) as stream:
        return read_some(path, stream, HEAD)


def read_some(path: Path, stream: IO[bytes], size: int) -> bytes:
    """The next bytes of what `opened` gave. UserError where a packed file is cut or damaged."""
    try:
        return stream.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({error}); copy it again from its source") from error


def _bounded(path: Path) -> bytes:
    with opened(path) as stream:
        raw = read_some(path, stream, MAX_TEXT + 1)
    return _within(str(path), raw)


def _stdin() -> bytes:
    return _within(STDIN, sys.stdin.buffer.read(MAX_TEXT + 1))


def _within(name: str, raw: bytes) -> bytes:
    if len(raw) > MAX_TEXT:
        raise UserError(f"{name}: has more than {MAX_TEXT} bytes of text; cut it to the runs in question")
    return raw


def _refuse(name: str, raw: bytes) -> None:
    if not raw.strip(b" \t\r\n\0\xef\xbb\xbf\xff\xfe"):
        raise UserError(f"{name}: is empty; {WHAT}")
    if raw[:4] == b"GGUF" or raw[:4] == b"FUGG":
        raise UserError(f"{name}: is a model (GGUF), not a record; to check a model: python -m bench doctor")
    if raw[:6] == b"SQLite":
        raise UserError(f"{name}: is a database of another kind than rocpd's or nsys's; export it as CSV")
    if raw.startswith(IMAGES) and b"\0" in raw[:4096]:
        raise UserError(f"{name}: is an image; numbers are not read off pictures, copy the text itself")
    if raw[:5] == b"%PDF-":
        raise UserError(f"{name}: is a PDF; copy the text out of it")
    for magic, command in PACKED.items():
        if raw.startswith(magic):
            raise UserError(f"{name}: is packed; run {command} on it first")


def _decode(name: str, raw: bytes) -> tuple[str, tuple[str, ...]]:
    """Text by its byte order mark, by its zero bytes, as UTF-8, or as Windows writes it."""
    for mark, code in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if raw.startswith(mark):
            note = () if code == "utf-8" else ("UTF-16, as PowerShell writes it",)
            return raw[len(mark) :].decode(code, errors="replace"), note
    zeros = raw[:HEAD].count(0)
    if zeros:
        code = "utf-16-le" if raw[1:HEAD:2].count(0) >= raw[0:HEAD:2].count(0) else "utf-16-be"
        text = raw.decode(code, errors="replace") if zeros > len(raw[:HEAD]) // 3 else "\0"
        if _UNSEEN.search(text[:HEAD].replace("\r", "")):
            raise UserError(f"{name}: is a binary file; {WHAT}")
        return text, ("UTF-16 without its mark",)
    try:
        return raw.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        if error.start >= len(raw) - 3:  # a text cut inside a letter
            return raw[: error.start].decode("utf-8"), ()
    text = raw.decode("cp1252", errors="replace")
    if len(_UNSEEN.findall(text[:HEAD].replace("\r", ""))) > len(text[:HEAD]) // 100:
        raise UserError(f"{name}: is a binary file; {WHAT}")
    return text, ("not UTF-8; read as Windows-1252",)
