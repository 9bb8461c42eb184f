"""The one error of this package that a user is meant to read: a sentence with the thing, the value and what to do.

It knows nothing about where it is raised; each command prints it and exits with code 2.
"""

from __future__ import annotations


class KernelError(Exception):
    """Something that the person at the keyboard can mend. Printed as one sentence, exit code 2."""
