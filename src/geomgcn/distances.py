r"""Distances of latent spaces, and the Euclidean balls that their balls are.

The neighbourhood search needs one thing beyond the distance of a pair: the set
:math:`\{u : d(z_u, z_v) < \rho\}` as a Euclidean ball, so that one k-d tree serves every geometry.
In the Poincaré ball this holds exactly, for the geodesic distance and for its tangent approximation.
A distance without ``balls`` works too, in time quadratic in the number of nodes.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from geomgcn._names import lookup
from geomgcn._types import Distance, Ends, Position


@runtime_checkable
class BallDistance(Protocol):
    """A distance whose balls are Euclidean balls."""

    @property
    def name(self) -> str:
        """What the command line and errors call it."""
        ...

    @property
    def symmetric(self) -> bool:
        """Whether source and target may change places."""
        ...

    def __call__(self, source: Ends, target: Ends) -> Float[Tensor, " num_edges"]:
        """Return the distance from each target to its source."""
        ...

    def balls(self, target: Position, radius: float) -> tuple[Position, Float[Tensor, " num_nodes"]]:
        """Return the Euclidean centre and radius of the ball of ``radius`` around each target."""
        ...


@dataclass(frozen=True)
class Euclidean:
    """The straight-line distance.

    Example:
        >>> Euclidean()(torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 4.0]]))
        tensor([5.])
    """

    name: ClassVar[str] = "euclidean"
    symmetric: ClassVar[bool] = True

    def __call__(self, source: Ends, target: Ends) -> Float[Tensor, " num_edges"]:
        """Return the distance from each target to its source."""
        return (source - target).square().sum(-1).sqrt()

    def balls(self, target: Position, radius: float) -> tuple[Position, Float[Tensor, " num_nodes"]]:
        """Return the balls themselves."""
        return target, target.new_full((target.size(0),), radius)


def _one_minus_square(pos: Tensor) -> Tensor:
    # (1 - r)(1 + r) keeps its leading digits near the rim, where 1 - r^2 loses half of them.
    norm = pos.norm(dim=-1)
    if bool((norm >= 1).any()):
        first = int((norm >= 1).nonzero()[0])
        raise ValueError(
            f"Hyperbolic distance needs positions inside the unit ball, got norm "
            f"{float(norm[first])!r} at row {first}. Scale the positions, or use the Euclidean distance."
        )
    return (1 - norm) * (1 + norm)


@dataclass(frozen=True)
class Geodesic:
    r"""The hyperbolic distance of the Poincaré ball.

    .. math:: d(u, v) = 2 \operatorname{arsinh} \frac{|u - v|}{\sqrt{(1 - |u|^2)(1 - |v|^2)}}

    Example:
        >>> Geodesic()(torch.tensor([[0.5, 0.0]]), torch.tensor([[0.0, 0.0]]))
        tensor([1.0986])
    """

    name: ClassVar[str] = "geodesic"
    symmetric: ClassVar[bool] = True

    def __call__(self, source: Ends, target: Ends) -> Float[Tensor, " num_edges"]:
        """Return the distance from each target to its source."""
        chord = (source - target).norm(dim=-1)
        scale = (_one_minus_square(source) * _one_minus_square(target)).sqrt()
        return 2 * torch.asinh(chord / scale)

    def balls(self, target: Position, radius: float) -> tuple[Position, Float[Tensor, " num_nodes"]]:
        """Return the Euclidean centre, drawn towards the origin, and radius of each ball."""
        half = target.new_tensor(radius / 2)
        t, square = torch.tanh(half), torch.cosh(half).pow(-2)  # square = 1 - t^2, which would cancel
        inside = _one_minus_square(target)
        shrink = inside + square * target.square().sum(-1)
        return target * (square / shrink).unsqueeze(-1), t * inside / shrink


@dataclass(frozen=True)
class Tangent:
    r"""The Euclidean distance in the tangent plane at the target, as the paper approximates the geodesic.

    .. math:: d(u, v) = \lambda_v |u - v|, \qquad \lambda_v = 2 / (1 - |v|^2)

    It is not symmetric: near the rim the same step is longer.

    Example:
        >>> Tangent()(torch.tensor([[0.1, 0.0]]), torch.tensor([[0.0, 0.0]]))
        tensor([0.2000])
    """

    name: ClassVar[str] = "tangent"
    symmetric: ClassVar[bool] = False

    def __call__(self, source: Ends, target: Ends) -> Float[Tensor, " num_edges"]:
        """Return the distance from each target to its source."""
        return 2 * (source - target).norm(dim=-1) / _one_minus_square(target)

    def balls(self, target: Position, radius: float) -> tuple[Position, Float[Tensor, " num_nodes"]]:
        """Return balls centred on the targets, smaller towards the rim."""
        return target, radius * _one_minus_square(target) / 2


_OURS: tuple[Distance, ...] = (Euclidean(), Geodesic(), Tangent())
DISTANCES = {distance.name: distance for distance in _OURS}


def distance_by_name(name: str) -> Distance:
    """Return a distance from its name.

    Example:
        >>> distance_by_name("tangent")
        Tangent()
    """
    return lookup("distance", name, DISTANCES)
