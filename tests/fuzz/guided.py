"""`python -m tests.fuzz.guided TARGET [SECONDS]`: inputs that are drawn by what they reach.

atheris changes a file's bytes and keeps each change that runs other lines. It needs the package of that name, which is
no part of the set-up (`pip install atheris`; there are wheels for Linux and some versions of Python only). A file's
first byte says which seed it stands in for, since a reader may go by a name.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["bench", "kernels", "pti_loop"], enable_loader_override=False):
    from tests.fuzz.targets import TARGETS

MOST_LETTERS = 1 << 16


def guided(name: str, seconds: float) -> None:
    """Run one target so for some seconds, and end the process, with 0 where nothing was found.

    An input that is a fault, takes over five seconds or a gigabyte is left as a file in the working directory.
    """
    target = TARGETS[name]
    seeds = target.seeds()
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    corpus, place = folder / "corpus", folder / "one"
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        (corpus / f"{number}").write_bytes(bytes([number]) + seed.read_bytes())

    def one(data: bytes) -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        with suppress(*target.sentences):
            target.read(seeds[data[0] % len(seeds)] if data else seeds[0], data[1:], place)

    limits = ["-timeout=5", "-rss_limit_mb=1024", f"-max_total_time={seconds:.0f}", f"-max_len={MOST_LETTERS}"]
    atheris.Setup([sys.argv[0], *limits, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    guided(sys.argv[1], float((sys.argv[2:] or ["60"])[0]))
