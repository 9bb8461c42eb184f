"""A model with zeros added says what it said, in rows that are whole tiles."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from bench.synth import command
from models import padded
from pti_loop.engine import ContextSpec, prefill


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("padded")
    source = folder / "source.gguf"
    assert command.main(["dense-mini", str(source), "format=F16"]) == 0
    target = folder / "wide.gguf"
    return source, target, padded.write(source, target, columns=600, tile=256)


def logits(path) -> np.ndarray:
    from pti_loop.llama.model import LlamaModel

    model = LlamaModel(path, 0)
    context = model.context(ContextSpec(n_ctx=32, n_seq_max=1))
    try:
        prefill(context, [3, 5, 7, 11], 0)
        return context.logits()[0].copy()
    finally:
        context.close()
        model.close()


def test_rows_are_whole_tiles(files):
    source, target, wide = files
    own = padded.sizes_of(gguf.GGUFReader(source))
    assert wide.columns == 768 and wide.heads // wide.kv_heads == own.heads // own.kv_heads
    tensors = {tensor.name: tuple(tensor.shape) for tensor in gguf.GGUFReader(target).tensors}
    assert tensors["blk.0.attn_output.weight"] == (wide.heads * wide.head, 768)
    matrices = {name: shape[0] for name, shape in tensors.items() if len(shape) == 2 and "ffn_down" not in name}
    assert matrices and all(columns % 256 == 0 for columns in matrices.values()), matrices


def test_logits_are_those_of_the_source(files):
    source, target, _ = files
    before, after = logits(source), logits(target)
    known = np.isfinite(before)  # a token that is never said has none
    assert known.sum() > 1000 and (known == np.isfinite(after)).all()
    before, after = before[known], after[known]
    assert np.abs(before - after).max() < 0.02 * before.std()
    assert np.argsort(before)[-5:].tolist() == np.argsort(after)[-5:].tolist()


def test_another_architecture_is_refused(tmp_path, capsys):
    source = tmp_path / "hybrid.gguf"
    assert command.main(["hybrid-mini", str(source)]) == 0
    with pytest.raises(SystemExit) as ended:
        padded.main([str(source), str(tmp_path / "out.gguf")])
    assert ended.value.code == 2 and "architecture qwen35" in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))
