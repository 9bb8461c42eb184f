"""Sizes in a GGUF file's metadata that are none: one sentence, at once, and never a computation with them."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from pti_loop.gguf import file as gguf_file
from pti_loop.gguf import header
from pti_loop.gguf.header import ArrayLength, ModelFileError, Value
from pti_loop.gguf.sizes import MOST, check_sizes
from tests.pti_loop.gguf.test_model_memory import write_hybrid

SOUND: dict[str, Value] = {
    "general.architecture": "qwen35", "qwen35.block_count": 4, "qwen35.embedding_length": 64,
    "qwen35.context_length": 512, "qwen35.attention.head_count": (4, 4, 4, 4), "qwen35.full_attention_interval": 2,
}  # fmt: skip


def check(**more: Value) -> None:
    named = {f"qwen35.{key.replace('__', '.')}": value for key, value in more.items()}
    check_sizes(Path("m.gguf"), SOUND | named, 9)


def test_sound_sizes_pass() -> None:
    check()
    check(full_attention_interval=2.0, nextn_predict_layers=1, attention__recurrent_layers=(True, False, 1))


@pytest.mark.parametrize("value", ["4", (4, 4), ArrayLength(4), True, math.nan, math.inf, -1, 1.5, MOST + 1, (b"4",)])
@pytest.mark.parametrize("key", ["block_count", "expert_count", "ssm__state_size", "attention__key_length"])
def test_what_is_no_size(key: str, value: Value) -> None:
    with pytest.raises(ModelFileError, match=rf"m.gguf is damaged: qwen35\.{key.replace('__', '.')} is .*number"):
        check(**{key: value})


@pytest.mark.parametrize(("key", "value"), [
    ("full_attention_interval", 0), ("attention__head_count", (4, math.inf)), ("attention__head_count_kv", (4, -4)),
    ("attention__recurrent_layers", (True,)), ("block_count", 2**31 - 1), ("block_count", 513),
    ("nextn_predict_layers", 4), ("expert_used_count", "two"),
])  # fmt: skip
def test_sizes_that_do_not_fit(key: str, value: Value) -> None:
    with pytest.raises(ModelFileError, match="is damaged"):
        check(**{key: value})


def test_a_model_of_a_thousand_million_layers_is_refused_at_once(tmp_path: Path) -> None:
    path = write_hybrid(tmp_path / "h.gguf", layers=4, interval=2)
    data = path.read_bytes()
    key = b".block_count"
    at = data.index(key) + len(key) + 4
    path.write_bytes(data[:at] + (2**31 - 1).to_bytes(4, "little") + data[at + 4 :])
    began = time.monotonic()
    with pytest.raises(ModelFileError, match=r"block_count is 2147483647, and it has \d+ tensors"):
        gguf_file.read(path)
    assert time.monotonic() - began < 2


def test_counts_and_lengths_of_a_header_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_hybrid(tmp_path / "h.gguf", layers=4, interval=2)
    for name, most in (("MOST_TEXT_BYTES", 3), ("MOST_PAIRS", 2), ("MOST_TENSORS", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(header, name, most)
            with pytest.raises(ModelFileError, match="is damaged"):
                gguf_file.read(path)
    gguf_file.read(path)
