"""The structural neighbourhood as layers read it fastest: sorted once, in both directions."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from geomgcn._types import EdgeIndex, EdgeType, EdgeWeight
from geomgcn.nn._long_rows import LongRows

PARTS = 64
"""Pieces of about equal work that threads share among them."""

ROW_WORK = 1
"""What an empty virtual node costs beside a pair: a line of zeros to write."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs sorted by the virtual node at one of their ends, its rows.

    Attributes:
        start: Where the pairs of each row begin; row ``node * num_virtual_nodes + virtual_node``.
        other: ``node * num_virtual_nodes + virtual_node`` at the other end of each pair.
        weight: One number a pair, or None where all count alike.
        order: Which of the pairs that the caller gave each pair is.
        found: Long rows, shared by the same pairs with other weights.
    """

    start: Int[Tensor, " num_rows_and_one"]
    other: Int[Tensor, " num_edges"]
    weight: EdgeWeight | None
    order: Int[Tensor, " num_edges"]
    num_virtual_nodes: int
    found: dict[bool, LongRows] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # Finding them waits for the device, which a CUDA graph cannot capture: so not at their first use.
        if self.start.is_cuda:
            for of_nodes in (False, True):
                self.long_rows(of_nodes)

    def long_rows(self, of_nodes: bool) -> LongRows:
        """Return the rows that are long, or the nodes whose rows together are."""
        if of_nodes not in self.found:
            step = self.num_virtual_nodes if of_nodes else 1
            self.found[of_nodes] = LongRows.of(self.start[::step])
        return self.found[of_nodes]

    @property
    def num_nodes(self) -> int:
        """How many nodes gather."""
        return (len(self.start) - 1) // self.num_virtual_nodes

    @cached_property
    def bounds(self) -> Int[Tensor, " num_parts_and_one"]:
        """Nodes at which pieces of about equal work begin."""
        first = self.start[:: self.num_virtual_nodes].long()
        work = first + ROW_WORK * self.num_virtual_nodes * torch.arange(len(first), device=first.device)
        cuts = torch.arange(PARTS + 1, device=first.device) * int(work[-1]) // PARTS
        bounds = torch.searchsorted(work, cuts)
        bounds[0], bounds[-1] = 0, self.num_nodes
        return bounds

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The bounds, starts and other ends for compiled loops."""
        return self.bounds.numpy(), self.start.numpy(), self.other.numpy()

    @cached_property
    def weight_array(self) -> np.ndarray:
        """The weights for compiled loops, empty for none."""
        return np.empty(0, np.float32) if self.weight is None else self.weight.detach().numpy()

    @cached_property
    def sizes(self) -> Int[Tensor, " num_rows"]:
        """How many pairs each row has."""
        return self.start.diff()

    def to(self, device: torch.device | str) -> "Pairs":
        """Return the same pairs on another device."""
        weight = None if self.weight is None else self.weight.to(device)
        start, other, order = (part.to(device) for part in (self.start, self.other, self.order))
        return Pairs(start, other, weight, order, self.num_virtual_nodes)

    def weighted(self, weight: EdgeWeight | None) -> "Pairs":
        """Return the same pairs with other weights, one for each pair that the caller gave, in that order."""
        return replace(self, weight=None if weight is None else weight[self.order])


@dataclass(frozen=True, eq=False)
class Adjacency:
    """A structural neighbourhood prepared for :class:`GeomConv`, which takes it in place of its edges.

    Sorting costs more than a layer does, so make one and pass it to every layer in every epoch. It holds
    each pair twice: where its target gathers, and where the gradient flows back to its source.

    Attributes:
        gather: Rows are the virtual nodes of targets.
        spread: Rows are sources, by the virtual node of the target that they reach.

    Example:
        >>> edge_index, edge_type = torch.tensor([[1, 0, 2], [0, 1, 0]]), torch.tensor([0, 1, 0])
        >>> adjacency = Adjacency.of(edge_index, edge_type, num_nodes=3, num_virtual_nodes=2)
        >>> adjacency
        Adjacency(num_nodes=3, num_virtual_nodes=2, num_edges=3)
        >>> adjacency.gather.start
        tensor([0, 2, 2, 2, 3, 3, 3], dtype=torch.int32)
    """

    gather: Pairs
    spread: Pairs

    @classmethod
    def of(
        cls,
        edge_index: EdgeIndex,
        edge_type: EdgeType,
        num_nodes: int,
        num_virtual_nodes: int,
        edge_weight: EdgeWeight | None = None,
    ) -> "Adjacency":
        """Sort pairs, as :class:`~geomgcn.neighborhoods.StructuralNeighborhood` wrote them, into rows.

        Args:
            edge_weight: For ``low_level="sum"``; by default 1 over the root of the in-degrees of both ends.
        """
        check_pairs(edge_index, edge_type, num_nodes, num_virtual_nodes, edge_weight)
        if edge_weight is None:
            edge_weight = in_degree_norm(edge_index, num_nodes, torch.get_default_dtype())
        if edge_weight.requires_grad:
            raise ValueError(
                "Adjacency keeps its weights, got edge_weight that requires a gradient. "
                "Pass edge_weight to the layer beside the adjacency, in every forward pass anew."
            )
        source = edge_index[0] * num_virtual_nodes + edge_type
        target = edge_index[1] * num_virtual_nodes + edge_type
        num_rows = num_nodes * num_virtual_nodes
        return Adjacency(
            _rows(target, source, num_rows, num_virtual_nodes, edge_weight),
            _rows(source, target, num_rows, num_virtual_nodes, edge_weight),
        )

    @property
    def num_nodes(self) -> int:
        """How many nodes the graph has."""
        return self.gather.num_nodes

    @property
    def num_virtual_nodes(self) -> int:
        """How many virtual nodes each node has."""
        return self.gather.num_virtual_nodes

    @property
    def num_edges(self) -> int:
        """How many pairs there are."""
        return len(self.gather.other)

    @property
    def device(self) -> torch.device:
        """Where the pairs are."""
        return self.gather.start.device

    def to(self, device: torch.device | str) -> "Adjacency":
        """Return the same neighbourhood on another device."""
        return Adjacency(self.gather.to(device), self.spread.to(device))

    def weighted(self, edge_weight: EdgeWeight | None) -> "Adjacency":
        """Return the same pairs with other weights, in the order of the pairs that this was made from."""
        return Adjacency(self.gather.weighted(edge_weight), self.spread.weighted(edge_weight))

    @cached_property
    def averaging(self) -> "Adjacency":
        """The same pairs, each weighing one over the number of pairs of its virtual node."""
        sizes = self.gather.sizes
        dtype = torch.get_default_dtype() if self.gather.weight is None else self.gather.weight.dtype
        share = sizes.to(dtype).reciprocal()
        gather = replace(self.gather, weight=share.repeat_interleave(sizes))
        return Adjacency(gather, replace(self.spread, weight=share[self.spread.other]))

    @cached_property
    def plain(self) -> "Adjacency":
        """The same pairs, each weighing one."""
        return Adjacency(replace(self.gather, weight=None), replace(self.spread, weight=None))

    def __repr__(self) -> str:
        shown = f"num_nodes={self.num_nodes}, num_virtual_nodes={self.num_virtual_nodes}"
        return f"{type(self).__name__}({shown}, num_edges={self.num_edges})"


def _rows(
    row: Int[Tensor, " num_edges"],
    other: Int[Tensor, " num_edges"],
    num_rows: int,
    num_virtual_nodes: int,
    weight: EdgeWeight,
) -> Pairs:
    """Sort pairs by row, and by the other end within a row."""
    order = (row * num_rows + other if num_rows < 2**31 else row).argsort(stable=True)
    start = starts_of(row, num_rows)
    small = torch.int32 if num_rows < 2**31 else torch.int64
    few = torch.int32 if len(row) < 2**31 else torch.int64
    return Pairs(start.to(few), other[order].to(small), weight[order], order.to(few), num_virtual_nodes)


def starts_of(row: Int[Tensor, " num_entries"], num_rows: int) -> Int[Tensor, " num_rows_and_one"]:
    """Return where the entries of each row begin, once they are sorted by row.

    Example:
        >>> starts_of(torch.tensor([0, 2, 0]), num_rows=3)
        tensor([0, 2, 2, 3])
    """
    start = torch.zeros(num_rows + 1, dtype=torch.long, device=row.device)
    torch.cumsum(torch.bincount(row, minlength=num_rows), 0, out=start[1:])
    return start


def check_pairs(
    edge_index: Tensor,
    edge_type: Tensor,
    num_nodes: int,
    num_virtual_nodes: int,
    edge_weight: Tensor | None,
) -> None:
    """Refuse what would land in another node's slot, or be read beyond the end of an array.

    Example:
        >>> check_pairs(torch.zeros(2, 1).long(), torch.zeros(1).long(), 1, 1, None)
    """
    for name, values in (("edge_type", edge_type), ("edge_weight", edge_weight)):
        if values is not None and values.shape != edge_index.shape[1:]:
            raise ValueError(
                f"GeomConv needs one entry of {name} for each of {edge_index.size(1)} pairs, "
                f"got shape {list(values.shape)}. Pass all that StructuralNeighborhood wrote."
            )
    if not edge_type.numel():
        return
    smallest, largest = (int(value) for value in edge_type.aminmax())
    if smallest < 0 or largest >= num_virtual_nodes:
        raise ValueError(
            f"GeomConv has num_virtual_nodes={num_virtual_nodes}, got edge types from {smallest} to "
            f"{largest}. Pass the num_virtual_nodes of the structural neighborhood."
        )
    smallest, largest = (int(value) for value in edge_index.aminmax())
    if smallest < 0 or largest >= num_nodes:
        raise ValueError(
            f"GeomConv has features of {num_nodes} nodes, got pairs of nodes from {smallest} to {largest}. "
            f"Pass the features of the graph that the pairs come from."
        )


def in_degree_norm(edge_index: EdgeIndex, num_nodes: int, dtype: torch.dtype) -> Float[Tensor, " num_edges"]:
    """Return 1 over the root of the in-degrees of both ends; zero where one receives nothing.

    Example:
        >>> in_degree_norm(torch.tensor([[0, 0, 1], [0, 1, 1]]), 2, torch.float32)
        tensor([1.0000, 0.7071, 0.5000])
    """
    degree = torch.bincount(edge_index[1], minlength=num_nodes).to(dtype)
    power = degree.pow(-0.5).masked_fill(degree == 0, 0.0)
    return power[edge_index[0]] * power[edge_index[1]]
