"""What the method of a stored configuration declares of itself, by the files of this version that declare methods.

It reads those files' declarations alone, and knows nothing about planning or judging.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pti_loop.parameters import Declaration, declare, resolve

BASELINE = "autoregressive"
"""The method of plain decoding, and what every method that has streams is with one of them."""


def declaration(name: str, parameters: Mapping[str, Any], streams: int) -> Declaration:
    """Of a method with its stored parameters. Raises `ParameterError` for a method or a value that there is not."""
    return declare(name, resolve(name, parameters) | dict(parameters), streams)


def of_servers(streams: int) -> dict[str, Any]:
    """Of servers: plain decoding. Requests at once are answers of their own, whatever happens inside."""
    made = declare(BASELINE, {}).as_dict()
    if streams > 1:
        words = f"{streams} requests at once"
        made |= {"answers": "independent", "layout": "sequences", "label": words, "short": words}
    return made
