"""An embedding with its settings in one line of text, as the command line takes it."""

import ast
import dataclasses
import inspect
from typing import Any

from geomgcn._names import lookup
from geomgcn.embeddings._base import Embedding, by_name
from geomgcn.embeddings._coordinates import Coordinates


def split_settings(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of ``"name(setting=value, ...)"``.

    Values are numbers, ``None``, ``True``, ``False``, or words.

    Example:
        >>> split_settings("poincare(epochs=30, mode=hogwild)")
        ('poincare', {'epochs': 30, 'mode': 'hogwild'})
        >>> split_settings("isomap")
        ('isomap', {})
    """
    name, bracket, rest = text.strip().partition("(")
    if bracket and not rest.endswith(")"):
        raise ValueError(f"Cannot read {text!r}. Write name(setting=value, setting=value).")
    settings: dict[str, Any] = {}
    for part in rest.removesuffix(")").split(",") if rest.removesuffix(")").strip() else []:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not (equals and key.isidentifier() and value) or key in settings:
            raise ValueError(
                f"Cannot read the setting {part.strip()!r} of {text!r}. "
                f"Write each once, as name(setting=value, setting=value)."
            )
        settings[key] = _value(value)
    return name.strip(), settings


def _value(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word


def from_text(text: str, **settings: Any) -> Embedding:
    """Return an embedding from its name and settings; those given as arguments win.

    Example:
        >>> from_text("poincare(epochs=30)", dim=3).dim
        3
        >>> from_text("isomap(dimm=3)")
        Traceback (most recent call last):
        ValueError: Unknown setting of isomap 'dimm'. Did you mean 'dim'? Known: dim...
    """
    name, found = split_settings(text)
    kind = by_name(name)
    known = {key: key for key in _settings_of(kind)}
    if kind is Coordinates:
        raise ValueError(f"Coordinates are brought by the graph and have no settings, got {text!r}.")
    if "seed" in settings and "seed" not in known:
        raise ValueError(f"Nothing in {name} is random. Leave the seed out.")
    given = {**found, **settings}
    return kind(**{lookup(f"setting of {name}", key, known): value for key, value in given.items()})


def _settings_of(kind: type[Embedding]) -> list[str]:
    """Return the names that a class takes: its fields, or the arguments of an ``__init__`` of its own."""
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    arguments = list(inspect.signature(kind.__init__).parameters)[1:]
    return [name for name in names if name in arguments] or arguments
