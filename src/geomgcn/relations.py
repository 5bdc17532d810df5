"""Relation operators: where a source lies, seen from its target (Section 2.1 of the paper).

An operator maps a pair of positions to one of ``num_relations`` ids. Write your own in ten lines:

Example:
    >>> from dataclasses import dataclass
    >>> import torch
    >>> from geomgcn.relations import RelationOperator
    >>> @dataclass(frozen=True)
    ... class NearFar(RelationOperator):
    ...     '''Nearer than one unit, or not.'''
    ...     num_relations: int = 2
    ...     def __call__(self, source, target):
    ...         return (source - target).norm(dim=-1).ge(1.0).long()
    >>> NearFar()(torch.tensor([[0.5, 0.0], [3.0, 0.0]]), torch.zeros(2, 2))
    tensor([0, 1])
"""

import inspect
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from geomgcn._names import canonical, is_reference, lookup, referenced
from geomgcn._types import Ends, Relation


class RelationOperator(ABC):
    r"""Base of the operators :math:`\tau(z_v, z_u) \to r`.

    A subclass sets ``num_relations`` and maps two tensors of positions, one row a pair, to one id a
    pair. It is found by its class name on the command line as soon as it is imported.
    """

    num_relations: int

    @abstractmethod
    def __call__(self, source: Ends, target: Ends) -> Relation:
        """Return the relation of each source, seen from its target."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name each relation, for tables and pictures."""
        return tuple(f"relation {i}" for i in range(self.num_relations))


def _require_plane(operator: RelationOperator, pos: Ends) -> None:
    dim = pos.size(-1)
    if dim != 2:
        raise ValueError(
            f"{type(operator).__name__} needs positions in 2 dimensions, got dim={dim}. "
            f"Embed with dim=2, or use an operator of your own for higher dimensions."
        )


_QUADRANT_NAMES = ("upper left", "upper right", "lower left", "lower right")


@dataclass(frozen=True)
class Quadrants(RelationOperator):
    r"""The four quadrants around the target, in rectangular coordinates (Section 3.1).

    With target :math:`v` and source :math:`u`, ids run row by row through the paper's table:

    ==  ===========  =========================================
    id  name         condition
    ==  ===========  =========================================
    0   upper left   ``z_v[0] >  z_u[0]`` and ``z_v[1] <= z_u[1]``
    1   upper right  ``z_v[0] <= z_u[0]`` and ``z_v[1] <= z_u[1]``
    2   lower left   ``z_v[0] >  z_u[0]`` and ``z_v[1] >  z_u[1]``
    3   lower right  ``z_v[0] <= z_u[0]`` and ``z_v[1] >  z_u[1]``
    ==  ===========  =========================================

    A source at the place of its target is upper right. Seen from the other end, 0 and 3 change
    places, and so do 1 and 2, unless the two share a coordinate.

    Example:
        >>> source = torch.tensor([[-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
        >>> Quadrants()(source, torch.zeros(4, 2))
        tensor([0, 1, 2, 3])
    """

    num_relations = 4
    names: ClassVar[tuple[str, ...]] = _QUADRANT_NAMES

    def __call__(self, source: Ends, target: Ends) -> Relation:
        """Return the quadrant of each source around its target."""
        _require_plane(self, target)
        right = target[:, 0] <= source[:, 0]
        lower = target[:, 1] > source[:, 1]
        return right.long() + 2 * lower.long()


@dataclass(frozen=True)
class PolarQuadrants(RelationOperator):
    """The four quadrants in angular coordinates (radius, angle), for the Poincaré disc (Section 3.1).

    Upper means at least as near to the origin, which is higher in the hierarchy; right means
    clockwise, the angle taken the short way round. Ids are those of :class:`Quadrants`. The origin
    itself has angle zero.

    Example:
        >>> target = torch.tensor([[0.0, 0.5], [0.0, 0.5]])
        >>> source = torch.tensor([[0.1, 0.2], [-0.1, 0.7]])
        >>> [PolarQuadrants.names[r] for r in PolarQuadrants()(source, target)]
        ['upper right', 'lower left']
    """

    num_relations = 4
    names: ClassVar[tuple[str, ...]] = _QUADRANT_NAMES

    def __call__(self, source: Ends, target: Ends) -> Relation:
        """Return the polar quadrant of each source around its target."""
        _require_plane(self, target)
        source, target = source + 0.0, target + 0.0  # -0.0 becomes 0.0: atan2 tells them apart
        angle = torch.atan2(target[:, 1], target[:, 0]) - torch.atan2(source[:, 1], source[:, 0])
        clockwise = torch.remainder(angle, 2 * math.pi)
        right = clockwise < math.pi
        lower = target.square().sum(-1) < source.square().sum(-1)
        return right.long() + 2 * lower.long()


@dataclass(frozen=True)
class Grid(RelationOperator):
    """The 3 x 3 grid of the paper's Figure 1, its middle cell centred on the target.

    Ids run row by row from the upper left, so the paper's number is the id plus one. The middle
    column and row are ``cell`` wide, borders included.

    Args:
        cell: Width of the middle cell, in units of the latent space. Isomap's unit is one hop.

    Example:
        >>> source = torch.tensor([[0.0, 2.0], [-2.0, -2.0], [0.1, 0.1]])
        >>> Grid(cell=1.0)(source, torch.zeros(3, 2)) + 1
        tensor([2, 7, 5])
    """

    cell: float = 1.0
    num_relations = 9
    names: ClassVar[tuple[str, ...]] = (
        "upper left",
        "above",
        "upper right",
        "left",
        "centre",
        "right",
        "lower left",
        "below",
        "lower right",
    )

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cell) and self.cell >= 0):
            raise ValueError(
                f"Grid needs a cell of zero or more, got cell={self.cell!r}. "
                f"Pass cell=1.0, one hop of Isomap."
            )

    def __call__(self, source: Ends, target: Ends) -> Relation:
        """Return the cell of each source around its target."""
        _require_plane(self, target)
        offset = source - target
        beyond = offset.sign() * (offset.abs() > self.cell / 2)
        column, row = (1 + beyond[:, 0]).long(), (1 - beyond[:, 1]).long()
        return 3 * row + column


MOST_SECTORS = 360
"""Each sector is a virtual node with a map of its own: more would be a slip of the finger."""


@dataclass(frozen=True)
class Sectors(RelationOperator):
    """Equal angles around the target, counted counter-clockwise from the positive x axis.

    A source at the place of its target is in sector 0.

    Example:
        >>> source = torch.tensor([[1.0, 0.1], [0.0, 1.0], [-1.0, 0.1], [0.1, -1.0]])
        >>> Sectors(8)(source, torch.zeros(4, 2))
        tensor([0, 2, 3, 6])
    """

    num_relations: int = 8

    def __post_init__(self) -> None:
        whole = isinstance(self.num_relations, int) and not isinstance(self.num_relations, bool)
        if not whole or not 1 <= self.num_relations <= MOST_SECTORS:
            raise ValueError(
                f"Sectors needs a whole number of sectors from 1 to {MOST_SECTORS}, "
                f"got num_relations={self.num_relations!r}. Pass 8, for example."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Name each sector by the angles it spans."""
        step = 360 / self.num_relations
        return tuple(f"{i * step:g} to {(i + 1) * step:g} degrees" for i in range(self.num_relations))

    def __call__(self, source: Ends, target: Ends) -> Relation:
        """Return the sector of each source around its target."""
        _require_plane(self, target)
        x, y = (source - target + 0.0).unbind(-1)  # -0.0 becomes 0.0: atan2 tells them apart
        turn = torch.remainder(torch.atan2(y, x) / (2 * math.pi), 1.0)
        return (turn * self.num_relations).long() % self.num_relations


def operators() -> dict[str, type[RelationOperator]]:
    """Return every relation operator that has been imported, by lower-case class name.

    Example:
        >>> operators()["grid"].__name__
        'Grid'
    """
    found: dict[str, type[RelationOperator]] = {}
    waiting = RelationOperator.__subclasses__()
    while waiting:
        kind = waiting.pop(0)
        waiting.extend(kind.__subclasses__())
        if not inspect.isabstract(kind):
            found[kind.__name__.lower()] = kind
    return found


def operator_by_name(name: str) -> RelationOperator:
    """Return an operator from its name; a number after a colon is its one setting.

    An operator of the user's own is found by its name once it is imported, and as ``module:Class`` before.

    Example:
        >>> operator_by_name("sectors:6")
        Sectors(num_relations=6)
    """
    base, _, setting = name.partition(":")
    if is_reference(name) and canonical(base) not in operators():
        return referenced("relation operator", name, RelationOperator)()
    cls = lookup("relation operator", base, operators())
    if not setting:
        return cls()
    parse = {Sectors: int, Grid: float}.get(cls)
    if parse is None:
        raise ValueError(f"{cls.__name__} takes no setting, got {name!r}. Write {base!r}.")
    try:
        return cls(parse(setting))  # type: ignore[call-arg]
    except ValueError as error:
        raise ValueError(f"Cannot read the setting of {name!r}: {error}") from None
