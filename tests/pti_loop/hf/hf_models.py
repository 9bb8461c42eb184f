"""Tiny random models in transformers' own format, one for each kind of memory, made in a folder: nothing is fetched."""

from __future__ import annotations

from pathlib import Path

N_VOCAB = 97
END = 2
_COMMON = {"vocab_size": N_VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4,
           "num_key_value_heads": 2, "head_dim": 8, "eos_token_id": END, "bos_token_id": 1,
           "initializer_range": 0.5}  # fmt: skip
_LINEAR = {"linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
WINDOW = 6


def network(kind: str):
    """A model with random weights: `attention`, `sliding` (with a window that the tests exceed), `hybrid`, `bloom`."""
    import torch
    import transformers as t

    torch.manual_seed(3)
    if kind == "attention":
        return t.LlamaForCausalLM(t.LlamaConfig(**_COMMON, num_hidden_layers=2))
    if kind == "sliding":
        types = ["sliding_attention", "full_attention", "sliding_attention"]
        return t.Qwen3ForCausalLM(t.Qwen3Config(**_COMMON, num_hidden_layers=3, layer_types=types,
                                                sliding_window=WINDOW, use_sliding_window=True))  # fmt: skip
    if kind == "hybrid":
        return t.Qwen3_5ForCausalLM(t.Qwen3_5TextConfig(**_COMMON, **_LINEAR, num_hidden_layers=4))
    return t.BloomForCausalLM(t.BloomConfig(vocab_size=N_VOCAB, hidden_size=32, n_layer=1, n_head=2))


def write(kind: str, folder: Path, words: bool = False) -> Path:
    """Save such a model, with a tokenizer of words where one is wanted."""
    network(kind).save_pretrained(folder)
    if words:
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast

        vocabulary = {f"w{i}": i for i in range(N_VOCAB)}
        made = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        PreTrainedTokenizerFast(tokenizer_object=made, eos_token=f"w{END}").save_pretrained(folder)
    return folder
