"""The engine on Hugging Face transformers: the same promises as on llama.cpp, one forward pass for one decode.

The rows of a decode are grouped by sequence into a batch; what is shorter is padded and masked (`cache.py`). It
knows nothing about methods or measuring. torch and transformers are an optional extra, imported with the first model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pti_loop.engine import Alone, ContextSpec, EngineError, Facts, Unsupported
from pti_loop.hf import load
from pti_loop.hf.context import HfContext
from pti_loop.weights import Weigh, by_numpy

if TYPE_CHECKING:  # neither torch nor cache.py, which imports it, is there without the extra
    from pti_loop.hf.cache import SequenceCache

_TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_CHECK_LIMIT = 0.1
"""Of the logits' standard deviation. Rounding in 16 bits moves them by a tenth of it; a wrong mask by several times."""


class HfModel(Alone):
    """Weights loaded by transformers from a folder or a GGUF file.

    `n_gpu_layers` 0 leaves them on the CPU, -1 puts all on the GPU where torch has one. Raises `EngineError`, and
    `Unsupported` for a model that cannot keep the engine's promises.
    """

    def __init__(self, path: str | Path, n_gpu_layers: int = -1) -> None:
        load.require()
        import torch

        if n_gpu_layers not in (0, -1):
            raise EngineError(f"engine.n_gpu_layers={n_gpu_layers} divides the layers, which model.engine=hf cannot; "
                              "set it to 0 (CPU) or -1 (GPU)")  # fmt: skip
        self.path = Path(path)
        self.device = torch.device("cuda" if n_gpu_layers and torch.cuda.is_available() else "cpu")
        network, self.vocabulary = load.load(self.path, str(self.device))
        self.network: Any = network
        """A causal language model of transformers; None once it is closed."""
        config = self.network.config.get_text_config()
        self.n_vocab = int(self.network.get_output_embeddings().weight.shape[0])
        self.n_layer = int(config.num_hidden_layers)
        self.end_tokens = [token for token in self.vocabulary.end_tokens if token < self.n_vocab]
        self.weigh: Weigh = by_numpy
        self.type_name = _TYPES.get(str(self.network.dtype).removeprefix("torch."), str(self.network.dtype))
        try:
            self._pattern, self._kinds, self._windows = self._memory_pattern(config)
            trial = self.memory(1, 1)
            self.hybrid = bool(trial.recurrent and trial.attention)
            self.recurrent = bool(trial.recurrent and not trial.attention)
            self.can_rewind = not trial.recurrent
            gap = self._check()
        except (AttributeError, KeyError, TypeError, ValueError, NotImplementedError) as error:
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
            raise Unsupported(f"{type(self.network).__name__} does not take a cache and masks of our own ({why}); use "
                              "model.engine=llama") from error  # fmt: skip
        if not gap < _CHECK_LIMIT:
            raise Unsupported(f"{type(self.network).__name__} says something else in a batch of sequences than alone "
                              f"(logits {gap:.2g} standard deviations apart); use model.engine=llama")  # fmt: skip

    def _memory_pattern(self, config: Any) -> tuple[Any, list[str], list[int | None]]:
        """Cache of one token, types of its layers, and lengths of the sliding ones' windows."""
        import torch
        from transformers.cache_utils import DynamicCache, get_layer_types_and_kwargs

        kinds, settings = get_layer_types_and_kwargs(config)
        pattern = DynamicCache(config=config)
        with torch.inference_mode():
            self.network(input_ids=torch.zeros((1, 1), dtype=torch.long, device=self.device), cache=pattern,
                         use_cache=True)  # fmt: skip
        return pattern, list(kinds), [one.get("sliding_window") for one in settings]

    def memory(self, n_seq_max: int, n_ctx: int) -> SequenceCache:
        """Empty memory for the sequences of a context. Raises `Unsupported` for layers that it does not know."""
        from pti_loop.hf.cache import SequenceCache

        return SequenceCache(self._pattern, self._kinds, self._windows, n_seq_max, n_ctx)

    def _check(self) -> float:
        """Decode two sequences in uneven passes, and each whole text without any cache.

        Returns the largest gap between their logits, in standard deviations. A model that takes its positions or its
        mask from elsewhere than it is given them would be silently wrong.
        """
        import torch

        text = [(7 + 13 * i) % self.n_vocab for i in range(5)]
        first, rest = (3, 1) if self.can_rewind else (3, 3), 2
        ctx = self.context(ContextSpec(n_ctx=8, n_seq_max=2, threads=torch.get_num_threads()))
        for starts, counts in (((0, 0), first), (first, (rest, rest))):
            rows = [(s, starts[s] + i) for s in range(2) for i in range(counts[s])]
            ctx.decode([text[at] for _, at in rows], [at for _, at in rows], [s for s, _ in rows], None)
        gaps = []
        with torch.inference_mode():
            for sequence, held in enumerate(first):
                ids = torch.tensor([text[: held + rest]], device=self.device)
                expected = self.network(input_ids=ids, use_cache=False).logits[0, -1].float()
                found = ctx.scores()[(sequence + 1) * rest - 1].float()
                gaps.append(float((found - expected).abs().max() / expected.std()))
        ctx.close()
        return max(gaps)

    def facts(self) -> Facts:
        """Layers, parameters, and where they are."""
        offloadable = self.n_layer + 1
        return {
            "description": f"{type(self.network).__name__} {self.type_name}",
            "n_layer": self.n_layer,
            "n_params": self.network.num_parameters(),
            "n_vocab": self.n_vocab,
            "layers_offloaded": 0 if self.device.type == "cpu" else offloadable,
            "layers_offloadable": offloadable,
            "memory": "hybrid" if self.hybrid else "recurrent" if self.recurrent else "attention",
        }

    def byte_facts(self) -> dict[str, int]:
        """Bytes of the weights as they are loaded, and of what a sequence holds; the file's own are smaller.

        A step reads all weights but an embedding table that the output layer does not share, whatever the routing.
        """
        tensor_bytes = sum(parameter.nbytes for parameter in self.network.parameters())
        table = self.network.get_input_embeddings().weight
        shared = table is self.network.get_output_embeddings().weight
        one = self.memory(1, 1)
        return {
            "tensor_bytes": tensor_bytes,
            "step_bytes": tensor_bytes - (0 if shared else table.nbytes),
            "kv_bytes_per_token": sum(layer.nbytes for layer in one.attention),
            "state_bytes_per_sequence": sum(layer.nbytes for layer in one.recurrent),
        }

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """Token ids, with the leading token that the model wants. What looks like a special token may be text.

        Raises `EngineError` where the model has no tokenizer.
        """
        return self.vocabulary.tokenize(text, special)

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Text of the token ids, special tokens shown. Raises `EngineError` where the model has no tokenizer."""
        return self.vocabulary.detokenize(tokens)

    def context(self, spec: ContextSpec) -> HfContext:
        """A fresh context. Raises `EngineError` for what transformers does not have, or when there is no room."""
        return HfContext(self, spec)

    def close(self) -> None:
        """Let the weights go."""
        self.network = None
