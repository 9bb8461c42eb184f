"""One look at a build of the engine, as a program of its own: `python -m bench.host.look_at_build [FOLDER]`.

It is run as a child with the build's libraries in place of the usual ones, and prints one line of JSON: what the build
is, and the defaults of the structures that the binding shares with it; or `fault`, a sentence. It decodes nothing.
"""

from __future__ import annotations

import ctypes
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

STRUCTS = ("llama_model", "llama_context")
_PLAIN = (ctypes.c_bool, ctypes.c_int, ctypes.c_uint, ctypes.c_int32, ctypes.c_uint32, ctypes.c_float, ctypes.c_size_t)


def main(folder: str) -> int:
    """Returns the exit code 0; whatever keeps the build from loading is in what it prints."""
    try:
        told = look(Path(folder) if folder else None)
    except AttributeError as error:
        told = {"fault": f"its libllama lacks what the binding calls ({str(error).rpartition(': ')[2]})"}
    except Exception as error:  # whatever keeps it from loading is the finding
        told = {"fault": f"its libraries do not load: {' '.join(str(error).split()) or type(error).__name__}"}
    print(json.dumps(told), flush=True)
    return 0


def look(folder: Path | None) -> dict[str, Any]:
    """What the libraries are, those of `folder` and no others. Raises whatever loading them does."""
    import llama_cpp  # noqa: F401 - before numpy, and its own error says what is missing

    from bench.host import libraries, provenance
    from pti_loop.llama import library

    engine = provenance.engine()
    if not library.devices():
        return {"fault": "it brings no backend that works here: its libggml knows no device"}
    if folder and (stray := strays(libraries.loaded(library.library_path()), folder)):
        return {"fault": f"{stray[0].name} is loaded from {stray[0].parent}, not from the build's folder; link it with "
                         "an RPATH of $ORIGIN"}  # fmt: skip
    return {"engine": engine, "defaults": defaults(library.library())}


def strays(loaded: Sequence[Path], folder: Path) -> list[Path]:
    """Libraries of the engine that came from elsewhere than the folder."""
    return [path for path in loaded if not path.resolve().is_relative_to(folder.resolve())]


def defaults(lib: Any) -> dict[str, dict[str, float]]:
    """Numbers and truth values of the structures that llama.cpp fills in itself, by structure and field."""
    found = {}
    for name in STRUCTS:
        params = getattr(lib, f"{name}_default_params")()
        values = {field: getattr(params, field) for field, kind, *_ in params._fields_ if kind in _PLAIN}
        found[f"{name}_params"] = {field: value for field, value in values.items() if not math.isnan(value)}
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
