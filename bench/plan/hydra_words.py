"""Values of overrides in Hydra's quotes, which it takes as they stand, and without them."""

from __future__ import annotations

QUOTES = ("'", '"')


def quoted(value: str) -> str:
    """A value so that Hydra's grammar reads it as it is."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def unquoted(text: str) -> str:
    """What a value in quotes says; any other as it is."""
    if len(text) < 2 or text[0] not in QUOTES or text[-1] != text[0]:
        return text
    return text[1:-1].replace(f"\\{text[0]}", text[0]).replace("\\\\", "\\")
