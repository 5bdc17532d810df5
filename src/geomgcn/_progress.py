"""What a long computation says while it runs, and what it keeps in case it is stopped."""

import os
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from geomgcn import _store

OnStep = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and how much there is."""

SAVE_EVERY = 20.0
"""Seconds between two writes to disk: what a power failure can cost."""


class Progress:
    """Where a computation reports its steps and leaves its state.

    A computation calls :meth:`step` after each piece of work, and :meth:`keep` with arrays from which it
    could go on; when it starts it asks :meth:`kept` for those of an earlier run that was stopped.
    Whoever runs it calls :meth:`flush` when it was stopped and :meth:`forget` when it is done.

    Args:
        on_step: Is told about each step.
        path: File for the state; without one nothing outlives the process.
        key: Of what is computed; a state that was kept under another one is not used.

    Example:
        >>> seen = []
        >>> progress = Progress(lambda stage, done, total: seen.append((stage, done, total)))
        >>> progress.step("epochs", 1, 10)
        >>> seen
        [('epochs', 1, 10)]
    """

    def __init__(
        self, on_step: OnStep | None = None, path: str | os.PathLike[str] | None = None, key: str = ""
    ) -> None:
        self._on_step = on_step
        self._path = None if path is None else Path(path)
        self._key = key
        self._earlier: dict[str, np.ndarray] | None = None
        self._is_read = False
        self._state: Mapping[str, np.ndarray] | None = None
        self._saved_at = time.monotonic()

    def step(self, stage: str, done: int, total: int) -> None:
        """Say that ``done`` of ``total`` pieces of a stage are done."""
        if self._on_step is not None:
            self._on_step(stage, done, total)

    def keep(self, **state: np.ndarray) -> None:
        """Remember copies of arrays from which the computation can go on; the last ones count.

        They are written to disk now and then, and by :meth:`flush`.
        """
        if self._path is None:
            return
        self._state = {name: np.array(array) for name, array in state.items()}
        if time.monotonic() - self._saved_at >= SAVE_EVERY:
            self.flush()

    def kept(self) -> dict[str, np.ndarray] | None:
        """Return the arrays of an earlier run that was stopped, or None; the same whenever it is asked.

        Example:
            >>> Progress().kept() is None
            True
        """
        if not self._is_read:
            self._is_read = True
            self._earlier = self._read()
        return self._earlier

    def _read(self) -> dict[str, np.ndarray] | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            arrays, metadata = _store.load_arrays(self._path)
            if metadata.get("key") != self._key:
                raise ValueError("the state of another run")
            return arrays
        except (OSError, ValueError):
            warnings.warn(
                f"What was kept of a run that was stopped cannot be used ({str(self._path)!r} is damaged, "
                f"misplaced or unreadable); the run starts again from its beginning.",
                stacklevel=3,
            )
            return None

    def flush(self) -> bool:
        """Write the arrays that were kept last, and return whether there is something to go on from."""
        if self._path is None:
            return False
        if self._state is None:
            return self._path.exists()
        try:
            _store.save_arrays(self._path, self._state, {"key": self._key})
        except OSError as error:
            warnings.warn(f"The state of the run could not be kept: {error}", stacklevel=2)
            return False
        self._saved_at = time.monotonic()
        return True

    def forget(self) -> None:
        """Remove what was kept: the result is there."""
        self._state = None
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
