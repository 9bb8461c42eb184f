"""Whether a cell's weights and contexts can fit onto the cards, by what is computed. It loads nothing."""

from __future__ import annotations

from bench.plan.settings import Config
from bench.run.engines import engine, offloads
from pti_loop.gguf.file import GgufFile


def no_room(config: Config, file: GgufFile, kind: str) -> str:
    """Why weights and contexts cannot fit onto the cards, told before anything is loaded; empty where they may.

    Weights and caches alone, so it never refuses what would run: the engine's own buffers come on top.
    """
    from bench.host.card_memory import card_memory

    whole = config.engine.n_gpu_layers < 0 and offloads(config)
    card = card_memory() if whole else None
    if card is None:
        return ""
    streams = max(config.measure.counted_widths) if kind == "counters" else config.streams + 2
    widest = max(config.measure.step_widths, 1) if kind == "profile" else streams
    n_ctx = config.engine.n_ctx + config.depth
    runs = engine(config.model.engine)
    caches = (runs.kv_bytes_per_token(file, config) * n_ctx + file.state_bytes_per_sequence()) * widest
    if file.step_bytes + caches <= card.free:
        return ""
    return (f"the weights take {file.step_bytes / 1e9:.1f} GB and the contexts of {widest} sequences of {n_ctx} tokens "
            f"{caches / 1e9:.1f} GB, and {card.free / 1e9:.1f} GB are free on the card; lower engine.n_ctx or streams, "
            "take a smaller quantization, or divide the model over more cards")  # fmt: skip
