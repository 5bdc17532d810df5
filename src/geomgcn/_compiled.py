"""Compiled loops: how they are compiled, and how many threads they use."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import torch


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with numba, releasing the interpreter lock, and keep the code on disk where possible."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder to keep it in: neither the package's nor the user's is writable
            return numba.njit(nogil=True, **options)(function)

    return decorate


@contextmanager
def threads_of_torch() -> Iterator[int]:
    """Let parallel loops use as many threads as torch does, and say how many those are.

    Example:
        >>> with threads_of_torch() as threads:
        ...     threads >= 1
        True
    """
    of_torch = torch.get_num_threads()
    if of_torch == 1:
        yield 1
        return
    before = numba.get_num_threads()
    threads = min(of_torch, numba.config.NUMBA_NUM_THREADS)
    if threads != before:
        numba.set_num_threads(threads)
    try:
        yield threads
    finally:
        if threads != before:
            numba.set_num_threads(before)
        if torch.get_num_threads() != of_torch:  # both may use one OpenMP, which has one number
            torch.set_num_threads(of_torch)
