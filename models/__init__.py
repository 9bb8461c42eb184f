"""Small models to measure with, how they were trained, and what they must not be used to conclude.

Importing this package needs neither PyTorch nor a tokenizer library; the training scripts do (`pip install .[train]`).
"""

import sys
from typing import NoReturn


def stop(sentence: str) -> NoReturn:
    """End a script of this package with one sentence and the exit code of wrong input, 2. Raises `SystemExit`."""
    print(sentence, file=sys.stderr)
    raise SystemExit(2)
