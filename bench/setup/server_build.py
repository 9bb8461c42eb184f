"""llama-server from the engine's pinned source, against the very libraries that the engine uses.

The archive lacks two things that a server is linked with: the web UI's built pages and libmtmd, which reads images. The
first is empty here and the second stands in: a text-only server calls what makes, frees and logs, all else ends the
server with a sentence. So only the server's own files are compiled, and no CMake is needed. Standard library only; it
runs no server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bench.setup import toolchain

NAME = "llama-server"
DEFINES = ("-DLLAMA_SUBPROCESS",)
"""What the library was built with beside the peers' own: classes differ by it."""
INCLUDES = ("tools/mtmd", "tools/server", ".")
_HEADERS = ("mtmd.h", "mtmd-helper.h")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARED = re.compile(r"(DEPRECATED\()?\bMTMD_API\s+([^;{}#]*?\b(mtmd_\w+)\s*\([^;{}#]*?\))\s*(?:,[^;]*\))?;")
HARMLESS = re.compile(r"\w+_(free|default|log_set)|mtmd_helper_support_video")
"""What a text-only server calls all the same: settings at their defaults, a logger that nobody uses, and frees."""


def makefile(source: Path, work: Path, flags: Sequence[str]) -> str:
    """Rules that compile every file of the server and its stand-ins into objects; `flags` are the compiler's own.

    Raises `UserError` when there is no compiler.
    """
    files = [*sorted((source / "tools" / "server").glob("*.cpp")), *stand_ins(source, work)]
    objects = {work / f"{path.stem}.o": path for path in files}
    command = " ".join([toolchain.compiler(), *flags])
    rules = (f"{target}: {path}\n\t{command} -c {path} -o {target}\n" for target, path in objects.items())
    return f"all: {' '.join(map(str, objects))}\n" + "".join(rules)


def stand_ins(source: Path, work: Path) -> list[Path]:
    """Write the empty web UI and the stand-in of libmtmd; returns the files that are to be compiled."""
    for name in ("ui.h", "ui.cpp"):
        text = (source / "tools" / "ui" / f"{name}.in").read_text()
        text = re.sub(r"#cmakedefine .*", "", text)
        for word, value in (("N_ASSETS", "0"), ("USE_GZIP", "false"), ("ASSET_ARRAYS", ""), ("ASSET_TABLE", "")):
            text = text.replace(f"@{word}@", value)
        (work / name).write_text(text)
    media = work / "no_media.cpp"
    media.write_text(no_media([(source / "tools" / "mtmd" / name).read_text() for name in _HEADERS]))
    return [work / "ui.cpp", media]


def no_media(headers: Sequence[str]) -> str:
    """C++ that defines every function of libmtmd's headers."""
    found = [one for text in headers for one in _DECLARED.findall(_COMMENT.sub("", text)) if not one[0]]
    bodies = []
    for _, declared, name in found:
        void = re.match(r"void\s+mtmd_", declared)
        body = ("" if void else "return {};") if HARMLESS.fullmatch(name) else f'unavailable("{name}");'
        bodies.append(f"{declared} {{ {body} }}\n")
    return (
        "".join(f'#include "{name}"\n' for name in _HEADERS) + "#include <cstdio>\n#include <cstdlib>\n"
        '[[noreturn]] static void unavailable(const char * name) {\n'
        '    fprintf(stderr, "%s: this server was built for text alone and takes no images or sound\\n", name);\n'
        "    exit(1);\n}\n" + "".join(bodies)
    )
