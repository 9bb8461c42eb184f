"""The inner loops of AMD's machine code, counted: what each turn of them issues, loads and waits for.

Reads the assembly that clang writes and what llvm-objdump says of a code object, which name a branch's target in two
ways. It runs no tool, and knows no kernel, card or time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

_FUNCTION = re.compile(r"^(?P<name>[A-Za-z_][\w.$]*):\s*; @")
_SYMBOL = re.compile(r"^[0-9a-f]+ <(?P<name>[^>]+)>:")
_LABEL = re.compile(r"^(?P<name>\.LBB\w+):")
_ADDRESS = re.compile(r"// (?P<address>[0-9A-F]+):")
_OFFSET = re.compile(r"<[^>]*?(?:\+0x(?P<offset>[0-9a-f]+))?>\s*$")
_END = re.compile(r"^\.Lfunc_end|^\s+\.section")
QUARTER = re.compile(r"v_(mul_lo_u32|mul_lo_i32|mul_hi_[iu]32|mad_u64_u32|mad_i64_i32|rcp|rsq|sqrt|exp|log|sin|cos)")
"""Instructions that take four times as long (LLVM's scheduling model of GCN: quarter rate)."""
_LOADS = ("global_load", "flat_load", "buffer_load")
_WORDS = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}


@dataclass(frozen=True, slots=True)
class Loop:
    """What one turn of a loop issues, for a wave."""

    vector: int = 0
    """Instructions of the vector unit; of them `quarter` at a quarter of the rate, `dot4` products of four bytes."""
    quarter: int = 0
    dot4: int = 0
    loads: int = 0
    load_bytes: int = 0
    """Of a lane."""
    load_clocks: int = 0
    """Clocks of the address unit, which takes 16 lanes a clock and 4 bytes of each."""
    waits: int = 0
    """Waits for loads (`s_waitcnt vmcnt`)."""
    local: int = 0
    """Instructions of the local memory."""
    length: int = 0
    """Instructions of all kinds."""

    @property
    def slots(self) -> int:
        """Issue slots of the vector unit."""
        return self.vector + 3 * self.quarter


Code = list[tuple[str, str]]
"""Of a function: ("label", name) and ("do", instruction), in order."""


def of_assembly(text: str) -> dict[str, Code]:
    """Each function of an assembly file, by its symbol."""
    found: dict[str, Code] = {}
    code: Code | None = None
    for line in text.splitlines():
        if start := _FUNCTION.match(line):
            code = found.setdefault(start["name"], [])
        elif code is None:
            continue
        elif _END.match(line):
            code = None
        elif label := _LABEL.match(line):
            code.append(("label", label["name"]))
        elif (instruction := line.split(";")[0].strip()) and not instruction.startswith("."):
            code.append(("do", instruction))
    return found


def of_disassembly(text: str) -> dict[str, Code]:
    """Each function of llvm-objdump's text, by its symbol. A branch's target becomes a label before it."""
    return {name: _labelled(lines) for name, lines in _bodies(text.splitlines())}


def _bodies(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    name, body = "", list[str]()
    for line in lines:
        if start := _SYMBOL.match(line):
            if name:
                yield name, body
            name, body = start["name"], []
        elif name and "//" in line:
            body.append(line)
    if name:
        yield name, body


def _labelled(lines: list[str]) -> Code:
    addresses = [int(found["address"], 16) if (found := _ADDRESS.search(line)) else -1 for line in lines]
    first = addresses[0] if addresses else 0
    targets = {place: target for place, line in enumerate(lines) if (target := _target(line, first)) is not None}
    code: Code = []
    for place, (line, address) in enumerate(zip(lines, addresses, strict=True)):
        if address in targets.values():
            code.append(("label", hex(address)))
        instruction = line.split("//")[0].strip()
        if place in targets:
            instruction = f"{instruction.split()[0]} {hex(targets[place])}"
        code.append(("do", instruction))
    return code


def _target(line: str, first: int) -> int | None:
    if not line.strip().startswith(("s_cbranch", "s_branch")):
        return None
    found = _OFFSET.search(line)
    return first + int(found["offset"] or "0", 16) if found else None


def inner(code: Code) -> Loop | None:
    """The innermost loop that multiplies: the shortest with products of bytes, else with loads; None without either."""
    counted = [count(code[first : last + 1]) for first, last in _loops(code)]
    for wanted in ("dot4", "loads"):
        if having := [loop for loop in counted if getattr(loop, wanted)]:
            return min(having, key=lambda loop: loop.length)
    return None


def _loops(code: Code) -> list[tuple[int, int]]:
    """First and last place of each loop; loops of one head are one, up to the last jump back."""
    places = {name: place for place, (kind, name) in enumerate(code) if kind == "label"}
    ends: dict[int, int] = {}
    for place, (kind, text) in enumerate(code):
        if kind == "do" and text.startswith(("s_cbranch", "s_branch")):
            head = places.get(text.split()[-1], place + 1)
            if head <= place:
                ends[head] = max(ends.get(head, 0), place)
    return sorted(ends.items())


def count(code: Code) -> Loop:
    """What the instructions come to."""
    sums = dict.fromkeys((one.name for one in fields(Loop)), 0)
    for kind, text in code:
        if kind == "do":
            for name, amount in _counts(text.split()[0], text):
                sums[name] += amount
    return Loop(**sums)


def _counts(operation: str, text: str) -> Iterator[tuple[str, int]]:
    yield "length", 1
    if operation.startswith("v_"):
        yield "vector", 1
        yield "quarter", int(bool(QUARTER.match(operation)))
        yield "dot4", int(operation.startswith("v_dot4"))
    elif operation.startswith(_LOADS):
        kind = operation.split("load_")[1]
        size = _WORDS.get(kind, 2 if "short" in kind else 1)
        yield "loads", 1
        yield "load_bytes", size
        yield "load_clocks", 4 * max(size // 4, 1)
    elif operation.startswith("ds_"):
        yield "local", 1
    elif operation.startswith("s_waitcnt"):
        yield "waits", int("vmcnt" in text)
