"""Lookup by name, with the nearest names in the error, and classes of a user's own by reference."""

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

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


def is_reference(name: str) -> bool:
    """Return whether a name has the form ``module:Class``.

    Example:
        >>> is_reference("my_project.spaces:Spectral"), is_reference("sectors:6"), is_reference("isomap")
        (True, False, False)
    """
    module, colon, attribute = name.partition(":")
    return bool(colon) and attribute.isidentifier() and all(map(str.isidentifier, module.split(".")))


def referenced(kind: str, name: str, base: type) -> Any:
    """Import the class that ``module:Class`` names.

    Args:
        kind: What the class is to be, in the singular, for errors.
        base: The class that it must be derived from.

    Example:
        >>> referenced("number", "fractions:Fraction", object)
        <class 'fractions.Fraction'>
        >>> referenced("number", "fractions:Fractoin", object)
        Traceback (most recent call last):
        ValueError: Unknown number 'fractions:Fractoin': the module 'fractions' has no such class. ...
    """
    module_name, _, attribute = name.partition(":")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Unknown {kind} {name!r}: {error}. Run where its file lies, or install its project."
        ) from error
    found = getattr(module, attribute, None)
    if not isinstance(found, type):
        raise ValueError(
            f"Unknown {kind} {name!r}: the module {module_name!r} has no such class. "
            f"Mind upper and lower case."
        )
    if not issubclass(found, base):
        raise ValueError(f"{name!r} is no {kind}. Derive it from {base.__module__}.{base.__qualname__}.")
    return found
