"""The one error that a user is meant to read: a sentence that names the thing, the value and the next command.

It knows nothing about where it is raised or how it is printed; `bench.cli` prints it and exits with code 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something that the person at the keyboard can mend. Printed as one sentence, exit code 2."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """`, did you mean 'x'?` for the closest choice, or the list of choices when nothing is close."""
    names = [str(choice) for choice in choices]
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return "choose from: " + ", ".join(sorted(names))
