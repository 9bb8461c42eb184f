"""Decode loops for language models: several sequences in one `llama_decode`. Knows nothing about benchmarks."""
