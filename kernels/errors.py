"""What a person at the keyboard can mend, as one sentence. Knows nothing about who prints it."""

from __future__ import annotations


class KernelError(Exception):
    """Bad input, no compiler, no device, too little memory: one clear sentence, exit code 2."""
