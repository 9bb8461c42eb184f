"""transformers behind the engine's protocol."""
