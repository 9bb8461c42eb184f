"""Measuring: the sweep, its worker processes, and what a worker does with a loaded model."""
