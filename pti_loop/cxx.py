"""Where the C++ compiler is that compiles the project's few files. Standard library only, since set-up needs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

USUAL = ("c++", "g++", "clang++")


def names(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """What is looked for: the compiler that CXX names, else the usual ones."""
    return tuple(environ.get("CXX", "").split()[:1]) or USUAL


def compiler(environ: Mapping[str, str] = os.environ) -> str | None:
    """Path of the first of them on the PATH, None where there is none."""
    path = environ.get("PATH")
    return next(filter(None, (shutil.which(name, path=path) for name in names(environ))), None)
