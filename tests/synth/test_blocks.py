"""Random blocks read back by the gguf package: they spread as asked, around 0, and no row is another's copy."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from bench.synth import blocks
from bench.synth.formats import FORMATS, Type, bits, type_of, unit

KINDS = [Type.F16, Type.Q8_0, Type.Q5_0, Type.Q5_1, Type.Q4_1, Type.Q4_K, Type.Q5_K, Type.Q6_K]


@pytest.fixture(autouse=True)
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "POOL_BYTES", 1 << 19)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_weights_spread_as_asked_around_zero(kind: Type) -> None:
    pool = blocks.pool(1, kind, 0.02, rows=100)
    values = gguf.quants.dequantize(pool.reshape(-1, unit(kind)[1]), kind)
    assert np.isfinite(values).all()
    assert values.std() == pytest.approx(0.02, rel=0.02)
    assert abs(values.mean()) < 0.02 * 0.01
    # A middle that is off shows in blocks; over all of them the scales' signs would hide it.
    means = values.mean(axis=1)
    assert np.sqrt(np.mean(means**2)) * np.sqrt(values.shape[1]) < 0.02 * 1.15
    assert np.abs(values).max() < 0.02 * 8
    assert len(np.unique(values)) > 1000


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_two_rows_start_at_the_same_piece(kind: Type) -> None:
    rows, pieces = 20_000, 18
    count = len(blocks.pool(1, kind, 0.02, rows)) // unit(kind)[1]
    assert count > rows
    assert len({row * pieces % count for row in range(rows)}) == rows


def test_seed_and_label_fix_the_words() -> None:
    """The literal keeps a change of generator from going unseen: files made before would have other bytes."""
    assert blocks.words(1, "a", 2).tolist() == blocks.words(1, "a", 3).tolist()[:2]
    assert blocks.words(1, "a", 2).tolist() != blocks.words(2, "a", 2).tolist()
    assert blocks.words(1, "a", 2).tolist() != blocks.words(1, "b", 2).tolist()
    assert blocks.words(1, "a", 1).tolist() == [13713096334225771255]


def test_numbers_are_around_their_centre() -> None:
    values = blocks.numbers(3, "norm", 40_000, 1.0, 0.1)
    assert values.dtype == np.float32
    assert values.mean() == pytest.approx(1.0, abs=0.002)
    assert values.std() == pytest.approx(0.1, rel=0.02)


def test_formats_choose_types_as_llama_quantize_does() -> None:
    assert type_of("Q4_1", "other", 576) == Type.Q4_1
    assert type_of("Q4_1", "head", 576) == Type.Q8_0  # 6 bits or more, and 576 is no multiple of 256
    assert type_of("Q4_K", "head", 4096) == Type.Q6_K
    assert type_of("F16", "head", 4096) == Type.F16
    assert [type_of(name, "other", 576) for name in ("Q4_K", "Q5_K", "Q6_K")] == [Type.Q5_0, Type.Q5_1, Type.Q8_0]
    assert type_of("UD-Q6_K_XL", "feed_forward", 5120) == Type.Q6_K
    assert type_of("UD-Q6_K_XL", "other", 5120) == Type.Q8_0
    assert bits(Type.Q6_K) == 6.5625
    assert {"F16", "Q8_0", "Q4_K", "Q5_K", "Q6_K"} <= set(FORMATS)
