"""Axis vocabulary and shape aliases.

Axes: ``num_nodes``, ``num_edges`` (ordered pairs), ``dim`` (axes of the latent space),
``channels``. A pair runs source -> target, as in PyG: the target gathers from the source.
"""

from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

EdgeIndex = Int[Tensor, "2 num_edges"]
EdgeType = Int[Tensor, " num_edges"]
EdgeWeight = Float[Tensor, " num_edges"]
Position = Float[Tensor, "num_nodes dim"]
NodeMask = Bool[Tensor, " num_nodes"]
Label = Int[Tensor, " num_nodes"]

Ends = Float[Tensor, "num_edges dim"]
"""One position per edge: where its source, or its target, lies."""

Relation = Int[Tensor, " num_edges"]
"""One relation id per edge: where the source lies, seen from the target."""


@runtime_checkable
class Distance(Protocol):
    """A named distance in a latent space, evaluated pair by pair."""

    @property
    def name(self) -> str:
        """What the command line and errors call it."""
        ...

    def __call__(self, source: Ends, target: Ends) -> Float[Tensor, " num_edges"]:
        """Return the distance from each target to its source."""
        ...
