"""Positions that the user brings: geographic, anatomical, or from another program."""

import hashlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from geomgcn import graphs
from geomgcn._types import EdgeIndex, Position
from geomgcn.embeddings._base import Embedding


@dataclass(frozen=True, eq=False)
class Coordinates(Embedding):
    """Positions that exist already, in Euclidean space.

    Args:
        pos: One row for each node, in the order of the nodes; kept as float64.

    Example:
        >>> places = torch.tensor([[52.5, 13.4], [48.9, 2.4]])
        >>> Coordinates(places).embed(torch.tensor([[0, 1], [1, 0]]), num_nodes=2).shape
        torch.Size([2, 2])
    """

    pos: Tensor
    dim: int = field(init=False)

    equivariant: ClassVar[bool] = False  # a row belongs to a number

    def __post_init__(self) -> None:
        pos = torch.as_tensor(self.pos)
        if pos.dim() != 2 or pos.shape[1] < 1:
            raise ValueError(
                f"Coordinates needs positions of shape [num_nodes, dim], got {list(pos.shape)}. "
                f"Reshape one axis with pos.view(-1, 1)."
            )
        pos = pos.detach().to(torch.float64).clone()  # later changes by the caller do not count
        bad = ~pos.isfinite().all(dim=1)
        if bad.any():
            raise ValueError(
                f"Coordinates needs finite positions, got {int(bad.sum())} nodes with NaN or infinity, "
                f"first at node {int(bad.nonzero()[0])}. Fill them or drop these nodes before."
            )
        object.__setattr__(self, "pos", pos)
        object.__setattr__(self, "dim", pos.shape[1])

    def __repr__(self) -> str:
        return f"Coordinates(num_nodes={len(self.pos)}, dim={self.dim})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Coordinates) and torch.equal(self.pos, other.pos)

    def __hash__(self) -> int:
        return hash(self.settings()["sha256"])

    def settings(self) -> dict[str, Any]:
        """Return the shape and a sha256 of the positions, in place of the positions.

        Example:
            >>> Coordinates(torch.zeros(3, 2)).settings()["num_nodes"]
            3
        """
        sha256 = hashlib.sha256(self.pos.cpu().contiguous().numpy().tobytes()).hexdigest()
        return {
            "embedding": "coordinates",
            "num_nodes": len(self.pos),
            "dim": self.dim,
            "sha256": sha256,
        }

    def embed(self, edge_index: EdgeIndex, num_nodes: int) -> Position:
        """Return the positions as they were given, one row for each node."""
        graphs.check_edges(edge_index, num_nodes)
        if len(self.pos) != num_nodes:
            raise ValueError(
                f"Coordinates needs one row for each of {num_nodes} nodes, got {len(self.pos)} rows. "
                f"Pass positions in the order of the nodes."
            )
        return self.pos.to(edge_index.device).clone()
