"""Multi-stream GEMV kernels and the SSQ format. Knows neither the harness (`bench`) nor the loops (`pti_loop`)."""
