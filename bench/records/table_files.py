"""A table of a cell as the content of a csv.gz file, and back as arrays by column.

It knows nothing about what is in a table beyond its columns.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import lru_cache
from typing import Any

import numpy as np

from bench.records.bounded import check_lines, unpacked, word_lengths
from bench.records.rows import columns

Columns = Mapping[str, np.ndarray]
_KINDS = {"int": "i8", "float": "f8"}


def packed(rows: Iterable[Sequence[Any]], header: Sequence[str]) -> bytes:
    """The file of some rows: the same rows give the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        text.flush()
        text.detach()
    return buffer.getvalue()


@lru_cache
def no_rows(record: type) -> Columns:
    """The table of a cell that has none. One for all cells: nobody writes into what was read."""
    return dict.fromkeys(columns(record), np.zeros(0))


def table_of(content: bytes, record: Any) -> Columns:
    """A table by column; one that the file lacks has its field's default. Raises ValueError on any other difference.

    numpy's reader: a frame would take longer to make than these small tables take to read.
    """
    text = unpacked(content).decode()
    check_lines(text)
    lines = text.removesuffix("\n").split("\n") if text else []  # a text may have what other ways take for an end
    header = lines[0].split(",") if lines else []
    known = [field for field in fields(record) if field.name in header]
    absent = {field.name: field.default for field in fields(record) if field.name not in header}
    if header != [field.name for field in known] or MISSING in absent.values():
        raise ValueError(f"it has the columns {header}, this version reads {columns(record)}")
    texts = [place for place, field in enumerate(known) if str(field.type) not in _KINDS]
    widths = dict(zip(texts, word_lengths(lines[1:], texts), strict=True))
    kinds = [(field.name, _KINDS.get(str(field.type)) or f"U{widths[place]}") for place, field in enumerate(known)]
    rows = np.loadtxt(lines[1:], dtype=kinds, delimiter=",", quotechar='"', comments=None, ndmin=1)
    found = {name: np.ascontiguousarray(rows[name]) for name in header}
    return found | {name: np.full(len(rows), default) for name, default in absent.items()}
