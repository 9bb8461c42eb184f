"""The one error that a user is meant to read: a sentence that names the thing, the value and the next command.

It knows nothing about where it is raised or how it is printed; `bench.cli` prints it and exits with code 2. For every
other error it tells the place in our own code, which is what a sentence about a fault names.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable
from pathlib import Path

_OWN = tuple(Path(__file__).resolve().parent.parent / name for name in ("bench", "pti_loop", "kernels"))


class UserError(Exception):
    """Something that the person at the keyboard can mend. Printed as one sentence, exit code 2."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """`, did you mean 'x'?` for the closest choice, or the list of choices when nothing is close."""
    names = [str(choice) for choice in choices]
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return "choose from: " + ", ".join(sorted(names))


def is_own(filename: str) -> bool:
    """Whether a file is of our own code, and no package's that it calls."""
    return any(folder in Path(filename).parents for folder in _OWN)


def innermost_frame(error: BaseException) -> str:
    """`file.py:line` of the innermost frame of our own code in an error's traceback; of any code when none is ours."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_own(frame.filename)] or list(frames)
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "no place"
