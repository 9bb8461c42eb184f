"""Small models to measure with, how they were trained, and what they must not be used to conclude.

Importing this package needs neither PyTorch nor a tokenizer library; the training scripts do (`pip install .[train]`).
"""
