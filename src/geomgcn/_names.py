"""Lookup by name, with the nearest names in the error."""

import difflib
from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")


def canonical(name: str) -> str:
    """Return ``name`` in the form in which names are compared.

    Example:
        >>> canonical("Geom_GCN ")
        'geom-gcn'
    """
    return name.strip().lower().replace("_", "-")


def lookup(kind: str, name: str, known: Mapping[str, Value]) -> Value:
    """Return ``known[name]``, forgiving case and underscores.

    Args:
        kind: What the names are of, in the singular; it opens the error.

    Example:
        >>> lookup("dataset", "Cora", {"cora": 1})
        1
        >>> lookup("dataset", "corra", {"cora": 1})
        Traceback (most recent call last):
        ValueError: Unknown dataset 'corra'. Did you mean 'cora'? Known: cora.
    """
    by_canonical = {canonical(key): value for key, value in known.items()}
    wanted = canonical(name)
    if wanted in by_canonical:
        return by_canonical[wanted]
    close = difflib.get_close_matches(wanted, by_canonical, n=2, cutoff=0.5)
    hint = f" Did you mean {' or '.join(repr(match) for match in close)}?" if close else ""
    raise ValueError(f"Unknown {kind} {name!r}.{hint} Known: {', '.join(known)}.")
