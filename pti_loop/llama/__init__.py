"""llama.cpp behind the engine's protocol."""
