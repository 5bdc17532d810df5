"""Checks of settings that several embeddings have."""

from typing import Any

LARGEST = 2**31 - 1


def check_whole(owner: Any, **least: int) -> None:
    """Refuse settings that are not whole numbers in their range.

    Args:
        owner: A dataclass with defaults; attributes of these names are checked.
        least: The smallest number that each may be.

    Example:
        >>> from types import SimpleNamespace
        >>> check_whole(SimpleNamespace(epochs=3), epochs=1)
    """
    name = type(owner).__name__
    for key, smallest in least.items():
        value = getattr(owner, key)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not smallest <= value <= LARGEST:
            bound = f"from {smallest}" if not is_whole or value < smallest else f"up to {LARGEST}"
            raise ValueError(
                f"{name} needs {key} to be a whole number {bound}, got {value!r}. "
                f"The default is {key}={getattr(type(owner), key, None)!r}."
            )
