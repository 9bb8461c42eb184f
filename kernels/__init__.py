"""GEMV kernels that read a weight once for several streams: sources, oracles, timing. Knows nothing of the harness."""
