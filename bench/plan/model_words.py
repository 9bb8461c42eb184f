"""What a stored cell's tokens say, where the very file of its weights lies here: in a package or in this repository.

A record says ids alone. A file with other bytes has another vocabulary, as far as anybody knows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any

from bench.errors import UserError
from bench.plan.model_files import model_path
from bench.plan.settings import Config
from pti_loop.gguf.file_hash import sha256_of
from pti_loop.gguf.header import ModelFileError
from pti_loop.gguf.words import token_words


def words_of(model: Mapping[str, Any], weights: str, ids: Collection[int]) -> dict[int, bytes]:
    """What some tokens say, by id; nothing where no file of these weights is here.

    `model` is the record's own description, `weights` the SHA-256 of its file.
    """
    config = Config()
    name, package, file = (str(model.get(key) or "") for key in ("name", "package", "file"))
    if not file or PurePath(file).is_absolute() or ".." in PurePath(file).parts:
        return {}
    config.model.name, config.model.package, config.model.file = name, package or None, file
    config.model.sha256 = str(model["sha256"]) if model.get("sha256") else None
    try:
        path = model_path(config)
        return token_words(path, ids) if sha256_of([path]) == weights else {}
    except (UserError, ModelFileError, OSError, ValueError):
        return {}
