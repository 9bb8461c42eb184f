"""How tokens are drawn and where answers begin and end, beside the temperature: the names and the usual values.

A record leaves out what is usual, so that a setting which nobody touched changes no id. It knows no method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CUTS: Mapping[str, float] = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
"""Take tokens away above temperature 0, and change nothing at it."""
PENALTIES: Mapping[str, float] = {"repeat_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}
WINDOW = "repeat_last_n"
CHAIN: Mapping[str, float] = {**CUTS, **PENALTIES, WINDOW: 64}
ENDS, TEMPLATE = "ignore_eos", "template"
PLAIN = "none"
"""The template of a prompt that is taken as it stands."""
USUAL: Mapping[str, Any] = {**CHAIN, ENDS: True, "prompt_template": PLAIN}
"""Conditions by the names that rows have them under."""


def drawing(config: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions of a stored configuration."""
    found = {name: config.get(name, usual) for name, usual in USUAL.items()}
    return found | {"prompt_template": (config.get("prompts") or {}).get(TEMPLATE) or PLAIN}


def drawn_words(config: Mapping[str, Any]) -> str:
    """What is not usual, as `top_p=0.9, ignore_eos=false`; empty where all is."""
    told = {name: value for name, value in drawing(config).items() if value != USUAL[name]}
    return ", ".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}"
                     for name, value in told.items())  # fmt: skip
