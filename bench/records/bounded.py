"""Reading a file that anybody may have written: nothing that it says is believed before its size is known.

Every reader here raises ValueError with the rest of a sentence that begins with the file's name, and OSError where the
system refuses. A pipe or a device is refused and never waited for. It knows nothing about what a file is for.
"""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

MOST_BYTES = 64 << 20
"""Of one file of records, packed or unpacked: some two million rows."""
MOST_LINES = 4_000_000
MOST_LINE_LETTERS = 1 << 20
MOST_NESTED = 64
MOST_VALUES = 200_000
_LETTERS_A_VALUE = 64
MOST_WORDS_BYTES = 128 << 20
"""What the texts of one table may take as arrays, whose every word takes what the longest one does."""
_LETTER_BYTES = 4
_CHUNK = 1 << 20


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most `most` bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is a pipe or a device, a regular file is expected")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has {max(found.st_size, len(content))} bytes, at most {most} are read")
    return content


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The same as UTF-8 text."""
    return read_bytes(path, most).decode("utf-8")


def unpacked(content: bytes, most: int = MOST_BYTES) -> bytes:
    """What a gzip file's content holds; little may hold very much. Raises what gzip raises, too."""
    found = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
        while chunk := packed.read(_CHUNK):  # asked for all at once, it would set that much aside
            found += chunk
            if len(found) > most:
                raise ValueError(f"it unpacks to more than {most} bytes")
    return bytes(found)


def yaml_value(text: str, loader: type | None = None) -> Any:
    """What a YAML text says, at most `MOST_VALUES` values with every alias written out. Raises `yaml.YAMLError`, too.

    Nine levels of aliases in 600 bytes say a thousand million things.
    """
    import yaml  # takes as long as a small text's whole audit, which needs none

    chosen = loader or getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    open_: list[tuple[str | None, int]] = []  # of each collection that is not closed: anchor, and values before it
    sizes: dict[str, int] = {}
    count = 0
    for event in yaml.parse(text, Loader=chosen):
        before = count
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_):
                raise _fault(event, f"the part &{event.anchor} has itself in it")
            count += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor:
                sizes[anchor] = count - before
        elif isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, before))
            count += 1
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor:
                sizes[event.anchor] = 1 + len(event.value) // _LETTERS_A_VALUE
        if len(open_) > MOST_NESTED:
            raise _fault(event, f"it is nested more than {MOST_NESTED} deep")
        if count > MOST_VALUES:
            raise _fault(event, f"it says more than {MOST_VALUES} things, aliases written out")
    return yaml.load(text, Loader=chosen)


def _fault(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    import yaml

    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def json_value(text: str) -> Any:
    """What a JSON text says."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep (recursion)") from None


def check_lines(text: str) -> None:
    """Raise ValueError where a CSV has more lines, or a longer one, than any table; both may be packed into nothing."""
    if (count := text.count("\n")) > MOST_LINES:
        raise ValueError(f"it has {count} lines, at most {MOST_LINES} are read")
    at = 0
    while len(text) - at > MOST_LINE_LETTERS:
        end = text.rfind("\n", at, at + MOST_LINE_LETTERS)
        if end < 0:
            raise ValueError(f"it has a line of more than {MOST_LINE_LETTERS} letters")
        at = end + 1


def word_lengths(lines: list[str], texts: list[int]) -> list[int]:
    """Letters of the longest word of some columns of a CSV, whose header is not among the lines.

    Raises ValueError where arrays of them would take more than `MOST_WORDS_BYTES`.
    """
    longest = max(map(len, lines), default=1)
    lengths = [longest] * len(texts)
    if not _too_long(lengths, len(lines)):
        return lengths  # no word is longer than its line, so nothing is cut off
    lengths = [1] * len(texts)
    try:
        for row in csv.reader(lines):
            lengths = [max(length, len(row[place])) if place < len(row) else length
                       for length, place in zip(lengths, texts, strict=True)]  # fmt: skip
    except csv.Error as error:  # a word of more letters than it takes
        raise ValueError(f"it has a line of {longest} letters: {error}") from error
    if _too_long(lengths, len(lines)):
        raise ValueError(f"it has a word of {max(lengths)} letters in {len(lines)} rows")
    return lengths


def _too_long(lengths: list[int], rows: int) -> bool:
    return sum(lengths) * _LETTER_BYTES * rows > MOST_WORDS_BYTES
