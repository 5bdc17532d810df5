"""Features that are mostly zero, such as bags of words, kept as what is not zero."""

from dataclasses import dataclass
from typing import Union

import torch
from jaxtyping import Float, Int
from torch import Tensor

from geomgcn.nn._adjacency import starts_of
from geomgcn.nn._plain import row_of_each

DENSEST = 0.3
"""Share of entries that are not zero up to which a sparse product is faster than a dense one."""


@dataclass(frozen=True, eq=False)
class Entries:
    """A sparse matrix as compressed rows.

    Attributes:
        start: Where the entries of each row begin.
        column: Of each entry.
        value: Of each entry.
    """

    start: Int[Tensor, " num_rows_and_one"]
    column: Int[Tensor, " num_entries"]
    value: Float[Tensor, " num_entries"]

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> "Entries":
        """Return the same entries on another device, as numbers of another type."""
        value = self.value.to(device, dtype or self.value.dtype)
        return Entries(self.start.to(device), self.column.to(device), value)


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Features prepared for :class:`GeomGCN`, which takes them in place of ``x``.

    Dropout then looks only at what is not zero: the same distribution as on the dense matrix, since
    a zero stays one. They are constants: no gradient reaches them.

    Attributes:
        by_node: The entries, node by node.
        by_channel: The same ones, channel by channel.

    Example:
        >>> SparseFeatures.of(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
        SparseFeatures(2, 2, num_entries=1)
    """

    by_node: Entries
    by_channel: Entries

    @classmethod
    def of(cls, x: Float[Tensor, "num_nodes channels"]) -> "SparseFeatures":
        """Keep what is not zero of a dense matrix, or of a sparse tensor."""
        if x.requires_grad:
            raise ValueError(
                "SparseFeatures are constants, got features that require a gradient. "
                "Pass the features themselves to the model, or x.detach()."
            )
        x = x.to_dense() if x.layout != torch.strided else x
        node, channel = x.nonzero(as_tuple=True)
        value = x[node, channel]
        order = channel.argsort(stable=True)
        return SparseFeatures(
            _compressed(node, channel, value, x.size(0)),
            _compressed(channel[order], node[order], value[order], x.size(1)),
        )

    @property
    def shape(self) -> torch.Size:
        """Nodes and channels."""
        return torch.Size([len(self.by_node.start) - 1, len(self.by_channel.start) - 1])

    @property
    def dtype(self) -> torch.dtype:
        """Of the values."""
        return self.by_node.value.dtype

    @property
    def device(self) -> torch.device:
        """Where the entries are."""
        return self.by_node.value.device

    def size(self, axis: int) -> int:
        """Return the number of nodes (0) or of channels (1)."""
        return self.shape[axis]

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> "SparseFeatures":
        """Return the same features on another device, as numbers of another type."""
        return SparseFeatures(self.by_node.to(device, dtype), self.by_channel.to(device, dtype))

    def to_dense(self) -> Float[Tensor, "num_nodes channels"]:
        """Return the dense matrix."""
        dense = torch.zeros(self.shape, dtype=self.dtype, device=self.device)
        dense[row_of_each(self.by_node.start), self.by_node.column.long()] = self.by_node.value
        return dense

    def __repr__(self) -> str:
        nodes, channels = self.shape
        return f"{type(self).__name__}({nodes}, {channels}, num_entries={len(self.by_node.value)})"


AnyFeatures = Union[Float[Tensor, "num_nodes in_channels"], SparseFeatures]  # noqa: UP007 - for beartype


def prepare_features(x: AnyFeatures) -> AnyFeatures:
    """Return features as they are multiplied fastest: sparse where few are not zero, otherwise as they are.

    Example:
        >>> prepare_features(torch.eye(10))
        SparseFeatures(10, 10, num_entries=10)
        >>> prepare_features(torch.ones(2, 1))
        tensor([[1.],
                [1.]])
    """
    if isinstance(x, SparseFeatures) or x.requires_grad:
        return x
    if x.layout == torch.strided and int(x.count_nonzero()) > DENSEST * x.numel():
        return x
    return SparseFeatures.of(x)


def _compressed(row: Tensor, column: Tensor, value: Tensor, num_rows: int) -> Entries:
    start = starts_of(row, num_rows)
    small = torch.int32 if max(len(row), num_rows, int(column.max()) if len(column) else 0) < 2**31 else None
    return Entries(start.to(small or torch.long), column.to(small or torch.long), value)
