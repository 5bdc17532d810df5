"""The layer on a prepared neighbourhood, for one run or for many at once.

The maps of all virtual nodes are one product, the sums over all of them another. Which comes first is
decided by counting, and changes the result by rounding only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from geomgcn._types import EdgeWeight
from geomgcn.nn import _ops
from geomgcn.nn._adjacency import Adjacency
from geomgcn.nn._dropout import Dropout
from geomgcn.nn._features import AnyFeatures, SparseFeatures
from geomgcn.nn._plain import Finish

LowLevel = Literal["sum", "mean", "max", "energy"]
HighLevel = Literal["cat", "mean"]
Values = Float[Tensor, "num_runs num_nodes _"]


@dataclass(frozen=True, eq=False)
class Maps:
    """What one layer has learned, for each run.

    Attributes:
        weight: The map of each virtual node.
        bias: Added after the high level.
    """

    weight: Float[Tensor, "num_runs in_channels num_virtual_nodes out_channels"]
    bias: Float[Tensor, "num_runs width"] | None
    low_level: LowLevel
    high_level: HighLevel


def layer(
    x: Values | SparseFeatures,
    adjacency: Adjacency,
    maps: Maps,
    *,
    edge_weight: EdgeWeight | None = None,
    dropout: Dropout | None = None,
    finish: Finish | None = None,
) -> Values:
    """Return the output of one layer.

    Args:
        edge_weight: In place of the weights of ``adjacency``; gradients reach it.
        dropout: Of the input.
        finish: What comes after the layer, its bias aside: the activation and the dropout of the next layer.

    Example:
        >>> adjacency = Adjacency.of(torch.tensor([[1, 0], [0, 1]]), torch.tensor([0, 1]), 2, 2)
        >>> maps = Maps(torch.randn(1, 3, 2, 4), None, "sum", "cat")
        >>> layer(torch.randn(1, 2, 3), adjacency, maps).shape
        torch.Size([1, 2, 8])
    """
    linear = maps.low_level in ("sum", "mean")
    if isinstance(x, SparseFeatures) and not linear:
        x = x.to_dense().expand(len(maps.weight), -1, -1)
    if dropout is not None and not isinstance(x, SparseFeatures):
        x = _ops.drop(x, dropout)
    if linear:
        adjacency = adjacency if maps.low_level == "sum" else adjacency.averaging
        edge_weight = edge_weight if maps.low_level == "sum" else None
        if isinstance(x, SparseFeatures) or map_comes_first(x, adjacency, maps):
            return _map_first(x, adjacency, maps, edge_weight, dropout, finish)
    assert isinstance(x, Tensor)
    gathered = _gathered(x, adjacency, maps.low_level, edge_weight)
    return _mapped(gathered, adjacency.num_nodes, maps, finish)


def forward_runs(
    x: AnyFeatures,
    adjacency: Adjacency,
    maps: Sequence[Maps],
    drops: Sequence[Dropout] | None,
    edge_weight: EdgeWeight | None = None,
) -> Values:
    """Return the logits of each node in each run: the layers one after another.

    Args:
        drops: Dropout of the input of each layer; none in evaluation.

    Example:
        >>> adjacency = Adjacency.of(torch.tensor([[1, 0], [0, 1]]), torch.tensor([0, 1]), 2, 2)
        >>> maps = [Maps(torch.randn(5, 3, 2, 4), None, "sum", "mean")]
        >>> forward_runs(torch.randn(2, 3), adjacency, maps, None).shape
        torch.Size([5, 2, 4])
    """
    runs = len(maps[0].weight)
    h = x if isinstance(x, SparseFeatures) else x.expand(runs, -1, -1)
    for i, one in enumerate(maps):
        last = i + 1 == len(maps)
        h = layer(
            h,
            adjacency,
            one,
            edge_weight=edge_weight,
            dropout=drops[0] if drops and i == 0 else None,  # later layers get theirs from the one before
            finish=None if last else Finish(dropout=drops[i + 1] if drops else None),
        )
    assert isinstance(h, Tensor)
    return h


def map_comes_first(x: Values, adjacency: Adjacency, maps: Maps) -> bool:
    """Return whether fewer numbers are moved when features are mapped before they are gathered.

    Both orders multiply the same matrices. What differs is how wide pairs and virtual nodes are, and that
    gathered features need no way back where ``x`` is constant.

    Example:
        >>> adjacency = Adjacency.of(torch.tensor([[1, 0], [0, 1]]), torch.tensor([0, 1]), 2, 2)
        >>> maps = Maps(torch.randn(1, 3, 2, 4), None, "sum", "cat")
        >>> map_comes_first(torch.randn(1, 2, 3), adjacency, maps)
        False
    """
    _, in_channels, count, out_channels = maps.weight.shape
    slots = adjacency.num_nodes * count
    both_ways = torch.is_grad_enabled()
    first = (1 + both_ways) * out_channels * (adjacency.num_edges + slots)
    last = (1 + (both_ways and x.requires_grad)) * in_channels * (adjacency.num_edges + slots)
    return first <= last


def _map_first(
    x: Values | SparseFeatures,
    adjacency: Adjacency,
    maps: Maps,
    edge_weight: EdgeWeight | None,
    dropout: Dropout | None,
    finish: Finish | None,
) -> Values:
    runs, in_channels, count, out_channels = maps.weight.shape
    weight = maps.weight.reshape(runs, in_channels, count * out_channels)
    # Dense features have been dropped before.
    mapped = _ops.multiply(x, weight, dropout) if isinstance(x, SparseFeatures) else _ops.matmul(x, weight)
    num_nodes = adjacency.num_nodes
    cat = maps.high_level == "cat"
    out = _ops.aggregate(
        mapped.view(runs, num_nodes * count, out_channels),
        adjacency,
        from_slots=True,
        to_slots=cat,
        scale=1.0 if cat else 1 / count,
        edge_weight=edge_weight,
        finish=None if finish is None else replace(finish, bias=maps.bias),
    ).view(runs, num_nodes, -1)
    return out if maps.bias is None or finish is not None else out + maps.bias.unsqueeze(1)


def _gathered(
    x: Values, adjacency: Adjacency, low_level: LowLevel, edge_weight: EdgeWeight | None
) -> Float[Tensor, "num_runs num_rows in_channels"]:
    """Return p of the features of each virtual node's members."""
    if low_level == "max":
        return _ops.largest(x, adjacency)
    if low_level == "energy":
        squares = _ops.aggregate(x.square(), adjacency.plain, from_slots=False, to_slots=True)
        return square_root(squares)
    return _ops.aggregate(x, adjacency, from_slots=False, to_slots=True, edge_weight=edge_weight)


def _mapped(
    gathered: Float[Tensor, "num_runs num_rows in_channels"],
    num_nodes: int,
    maps: Maps,
    finish: Finish | None,
) -> Values:
    """Return q of the maps of virtual nodes, and what comes after."""
    runs, in_channels, count, out_channels = maps.weight.shape
    by_slot = maps.weight.transpose(1, 2)
    if maps.high_level == "mean":
        wide = gathered.view(runs, num_nodes, count * in_channels)
        out = _ops.matmul(wide, by_slot.reshape(runs, count * in_channels, out_channels)) / count
    else:
        rows = gathered.view(runs, num_nodes, count, in_channels)
        out = _ops.matmul(rows.transpose(1, 2), by_slot).transpose(1, 2).flatten(2)
    out = out if maps.bias is None else out + maps.bias.unsqueeze(1)
    if finish is None:
        return out
    out = out.relu()
    return out if finish.dropout is None else _ops.drop(out, finish.dropout)


def square_root(energy: Tensor) -> Tensor:
    """Return the root of sums of squares, with a slope of zero where the root has an infinite one.

    Every empty virtual node lies there. Subnormal sums count as zero too: what they hold is rounding.

    Example:
        >>> square_root(torch.tensor([0.0, 4.0]))
        tensor([0., 2.])
    """
    empty = energy < torch.finfo(energy.dtype).tiny
    return energy.masked_fill(empty, 1.0).sqrt().masked_fill(empty, 0.0)
