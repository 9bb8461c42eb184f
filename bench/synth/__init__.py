"""Synthetic models: GGUF files of a given shape with random weights, for what depends on the shape alone.

A step costs what its bytes cost, whatever the weights are. What a model says is another matter: it knows nothing about
acceptance, losslessness or quality, and the judge takes no such evidence from a file made here.
"""
