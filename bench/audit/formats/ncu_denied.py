"""ncu's words where it could not count: the driver keeps the counters to administrators, or nothing was profiled."""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.trials import Flag

_DENIED = re.compile(r"ERR_NVGPUCTRPERM")
_ERROR = re.compile(r"==ERROR== *(.{0,160})")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("ncu's messages")
    for line, match in block.search(_ERROR):
        found.used.add(line.number)
        if _DENIED.search(line.text):
            found.flags.append(
                Flag(
                    "DENIED",
                    f"{block.name}, line {line.number}: ncu had no permission to read the counters "
                    "(ERR_NVGPUCTRPERM); nothing was "
                    "counted. Run it as administrator, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
                )
            )
        elif match[1].strip():
            found.flags.append(Flag("DENIED", f"{block.name}, line {line.number}: ncu says: {match[1].strip()}"))
    return found
