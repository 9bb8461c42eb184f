"""The ways of decoding, one module each, and the one list that names them.

A method module has NAME, GUESSES (whether it proposes tokens that may be wrong), LAYOUT (whether the rows of a decode
are one token of several `sequences`, or `tokens` of one), `sequences(settings)`, `width(settings)` and
`run(decoder, prompts)`. `packed` takes `streams` prompts, the others one.
"""

from __future__ import annotations

from types import ModuleType

from pti_loop.methods import autoregressive, jacobi, lookup, packed, stagger

METHODS: dict[str, ModuleType] = {module.NAME: module for module in (autoregressive, stagger, packed, jacobi, lookup)}
