"""GGUF files: header, sizes, hashes, whether two models go together."""
