"""Ways of damaging a file: bytes of any, lines and words of a text, values of JSON and YAML, entries of a GGUF header.

Everything is drawn from one `random.Random`, so that a number is enough to have the same input again. It knows no
reader.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import yaml

NUMBERS = (
    0, -1, 1, 2, 3, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, 10**400, -(2**63), 0.5, -0.0,
    1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), True,
)  # fmt: skip
TEXTS = (
    "", " ", "nan", "inf", "-", "1e999", "0x10", "x" * 3000, "\u0663", "\u202e", "\0", "\x1b[2J", "<script>", "=1+1",
    "a,b", '"', "'", "{", "[", "$x$", "\ud800", "1" * 5000, "None", "true", "../../x", "%s", "${oc.env:HOME}", "*",
    "&a", "!!map",
)  # fmt: skip
Draw = random.Random


def value(draw: Draw) -> Any:
    """Something that does not belong where it is put."""
    kind = draw.randrange(6)
    if kind < 3:
        return draw.choice(NUMBERS)
    if kind == 3:
        return draw.choice(TEXTS)
    if kind == 4:
        return draw.choice((None, [], {}, [None], {"a": None}, [[]], {"": {}}))
    deep: Any = 1
    for _ in range(draw.choice((2, 30, 300))):
        deep = [deep] if draw.random() < 0.5 else {"a": deep}
    return deep


def tree(draw: Draw, whole: Any) -> Any:
    """The same values but for a few, which are other ones, gone, doubled, or in another's place."""
    whole = copy.deepcopy(whole)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        places = list(_places(whole))
        if not places:
            return value(draw)
        parent, key = draw.choice(places)
        kind = draw.randrange(5)
        if kind == 0:
            del parent[key]
        elif kind == 1:
            other, name = draw.choice(places)
            parent[key] = copy.deepcopy(other[name]) if _holds(other, name) else None
        elif kind == 2 and isinstance(parent, dict):
            parent[draw.choice(TEXTS)] = parent.pop(key)
        elif kind == 3 and isinstance(parent, list):
            more = parent[: draw.choice((1, 50))]
            with suppress(RecursionError):  # a part that an earlier change put deep inside itself stays one
                parent.extend(copy.deepcopy(more))
        else:
            parent[key] = value(draw)
    return whole


def _places(whole: Any) -> Any:
    pairs = whole.items() if isinstance(whole, dict) else enumerate(whole) if isinstance(whole, list) else ()
    for key, part in list(pairs):
        yield whole, key
        yield from _places(part)


def _holds(parent: Any, key: Any) -> bool:
    return key in parent if isinstance(parent, dict) else key < len(parent)


def raw(draw: Draw, data: bytes) -> bytes:
    """Bytes flipped, cut, doubled, moved or put in."""
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        at, end = sorted((draw.randrange(len(out) + 1), draw.randrange(len(out) + 1)))
        end = min(end, at + draw.choice((1, 4, 8, 64, 4096)))
        kind = draw.randrange(6)
        if kind == 0:
            del out[at:end]
        elif kind == 1:
            out[at:at] = out[at:end] * draw.choice((1, 2, 40))
        elif kind == 2:
            del out[at:]
        elif kind == 3:
            out[at:end] = draw.choice((b"\0", b"\xff", b"\x80", b"\n", b",", b"[", b"{", b"\xef\xbb\xbf")) * (end - at)
        elif kind == 4:
            number = draw.choice(NUMBERS)
            size = draw.choice((4, 8))
            out[at : at + size] = struct.pack("<Q", _small(number))[:size]
        elif out:
            out[at % len(out)] ^= 1 << draw.randrange(8)
    return bytes(out)


def _small(number: Any) -> int:
    return int(number) % 2**64 if number == number and abs(number) != float("inf") else 2**64 - 1


_MOST_LETTERS = 100_000
_WORD = re.compile(r"[^\s,;|={}\[\]:\"]+")


def text(draw: Draw, whole: str) -> str:
    """Words and lines replaced, dropped, doubled, joined, or the bytes of all of it damaged."""
    for _ in range(draw.choice((1, 1, 2, 5))):
        if len(whole) > _MOST_LETTERS:
            break
        kind = draw.randrange(6)
        words = list(_WORD.finditer(whole))
        if kind < 3 and words:
            word = draw.choice(words)
            other = draw.choice((str(draw.choice(NUMBERS))[:400], draw.choice(TEXTS), draw.choice(words)[0], ""))
            whole = whole[: word.start()] + other + whole[word.end() :]
        elif kind == 3:
            lines = whole.splitlines(keepends=True) or [""]
            at = draw.randrange(len(lines))
            lines[at : at + 1] = draw.choice(([], [lines[at]] * 2, [lines[at]] * 200, [lines[at].rstrip("\n")],
                                              [draw.choice(lines)]))  # fmt: skip
            whole = "".join(lines)
        elif kind == 4:
            at = draw.randrange(len(whole) + 1)
            whole = whole[:at] + draw.choice(TEXTS) * draw.choice((1, 1, 30)) + whole[at:]
        else:
            whole = raw(draw, whole.encode("utf-8", "replace")).decode("utf-8", "replace")
    return whole


def as_text(draw: Draw, data: bytes) -> bytes:
    """A text file, damaged as text or as bytes."""
    if draw.random() < 0.2:
        return raw(draw, data)
    return text(draw, data.decode("utf-8", "replace")).encode("utf-8", "replace")


def as_json(draw: Draw, data: bytes) -> bytes:
    """A JSON file, damaged in its values, as text or as bytes."""
    if draw.random() < 0.3:
        return as_text(draw, data)
    return json.dumps(tree(draw, json.loads(data))).encode()


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""libyaml's where it is there: they take a tenth of the time, which would be most of a run."""


@cache
def _loaded(data: bytes) -> Any:
    return yaml.load(data, Loader=_LOADER)


def as_yaml(draw: Draw, data: bytes) -> bytes:
    """A YAML file, the same way; sometimes with anchors all over it."""
    if draw.random() < 0.5:
        return as_text(draw, data)
    shared = tree(draw, _loaded(data))
    try:
        text: str = yaml.dump(shared, Dumper=_DUMPER, allow_unicode=draw.random() < 0.5)
        return text.encode("utf-8", "replace")
    except (yaml.YAMLError, RecursionError, ValueError):  # ValueError: half a surrogate pair
        return as_text(draw, data)


def as_packed(draw: Draw, data: bytes) -> bytes:
    """A gzip file, damaged inside or outside."""
    if draw.random() < 0.3:
        return raw(draw, data)
    return gzip.compress(as_text(draw, gzip.decompress(data)), 1)


Change = Callable[[Draw, bytes], bytes]
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def as_gguf(draw: Draw, data: bytes) -> bytes:
    """A GGUF file whose metadata have other values and types, with counts and lengths that fit, or damaged bytes."""
    if draw.random() < 0.3:
        return raw(draw, data)
    version, tensors, count = struct.unpack_from("<IQQ", data, 4)
    at, entries = 24, []
    for _ in range(count):
        start = at
        length = struct.unpack_from("<Q", data, at)[0]
        at += 8 + length
        kind = struct.unpack_from("<I", data, at)[0]
        value_at = at = at + 4
        at = _skip(data, at, kind)
        entries.append([data[start : value_at - 4], kind, data[value_at:at]])
    rest = data[at:]
    for _ in range(draw.choice((1, 1, 2, 4))):
        if not entries:
            break
        place = draw.randrange(len(entries))
        key, kind, content = entries[place]
        choice = draw.randrange(6)
        if choice == 0:
            del entries[place]
        elif choice == 1:
            entries.append([key, kind, content])
        elif choice == 2:
            entries[place][1:] = draw.choice(entries)[1:]
        else:
            entries[place][1:] = _gguf_value(draw)
    if draw.random() < 0.2:
        rest = raw(draw, rest)
    if draw.random() < 0.1:
        tensors = draw.choice((0, 1, tensors + 1, 2**40))
    head = struct.pack("<4sIQQ", b"GGUF", version, tensors, len(entries))
    return head + b"".join(key + struct.pack("<I", kind) + content for key, kind, content in entries) + rest


def _skip(data: bytes, at: int, kind: int) -> int:
    if kind == 8:
        return at + 8 + int(struct.unpack_from("<Q", data, at)[0])
    if kind != 9:
        return at + _SIZES[kind]
    inner, length = struct.unpack_from("<IQ", data, at)
    at += 12
    for _ in range(length):
        at = _skip(data, at, inner)
    return at


def _gguf_value(draw: Draw) -> tuple[int, bytes]:
    """A type and the bytes of a value of it."""
    kind = draw.choice((0, 4, 4, 5, 5, 6, 6, 7, 10, 11, 12, 8, 9))
    if kind == 8:
        words = draw.choice(TEXTS).encode("utf-8", "replace")
        return 8, struct.pack("<Q", len(words)) + words
    if kind == 9:
        inner, length = draw.choice((4, 5, 6, 7, 8)), draw.choice((0, 1, 2, 3, 40))
        return 9, struct.pack("<IQ", inner, length) + b"".join(_scalar(draw, inner) for _ in range(length))
    return kind, _scalar(draw, kind)


def _scalar(draw: Draw, kind: int) -> bytes:
    number = draw.choice(NUMBERS)
    if kind == 8:
        return struct.pack("<Q", 1) + b"x"
    if kind in (6, 12):
        finite = number if not isinstance(number, int) or abs(number) < 2**64 else 0
        return struct.pack("<f" if kind == 6 else "<d", finite if kind == 12 or abs(finite) < 1e38 or finite != finite
                           or abs(finite) == float("inf") else 1e38)  # fmt: skip
    return struct.pack("<Q", _small(number))[: _SIZES[kind]]
