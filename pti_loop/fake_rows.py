"""Rows of numbers that can be read until the next decode, and that raise from then on: what an engine's own buffer is.

An engine writes its next logits over the last ones, so whoever kept a view of them reads another decode's. It knows
nothing about models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from pti_loop.engine import EngineError


class Lease:
    """Whether the rows of one decode may still be read, and the arrays to spoil when they may not."""

    def __init__(self) -> None:
        self.over = False
        self._arrays: list[NDArray[np.float32]] = []

    def rows(self, array: NDArray[np.float32]) -> Rows:
        """Rows under this lease, in memory of their own."""
        self._arrays.append(array)
        return Rows(array, self)

    def end(self) -> None:
        """The next decode begins. Views that numpy made of the rows hold nothing but nan from here on."""
        self.over = True
        for array in self._arrays:
            array.fill(np.nan)


class Rows(NDArrayOperatorsMixin):
    """Stands in for a view of a float32 array, to whoever reads it and to numpy."""

    def __init__(self, array: NDArray[np.float32], lease: Lease) -> None:
        self._array, self._lease = array, lease

    def _read(self) -> NDArray[np.float32]:
        if self._lease.over:
            raise EngineError("these rows belong to an earlier decode, whose buffer has been written over; copy them")
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = self._read()
        return found.astype(dtype) if dtype is not None and dtype != found.dtype else found.copy() if copy else found

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        return getattr(ufunc, method)(*(np.asarray(one) if isinstance(one, Rows) else one for one in inputs), **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read(), name)

    def __len__(self) -> int:
        return len(self._read())

    def __getitem__(self, key: Any) -> Any:
        part = self._read()[key]
        shared = isinstance(part, np.ndarray) and np.may_share_memory(part, self._array)
        return Rows(part, self._lease) if shared else part

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))
