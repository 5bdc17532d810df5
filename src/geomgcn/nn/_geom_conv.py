from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.inits import glorot, zeros
from torch_geometric.typing import OptTensor

from geomgcn._types import EdgeIndex, EdgeType, EdgeWeight
from geomgcn.nn._adjacency import Adjacency, check_pairs, in_degree_norm
from geomgcn.nn._features import AnyFeatures, SparseFeatures
from geomgcn.nn._prepared import HighLevel, LowLevel, Maps, layer, square_root


class GeomConv(MessagePassing):
    r"""The bi-level aggregation of `Geom-GCN <https://arxiv.org/abs/2002.05287>`_ (Sections 2.2, 3.2).

    The low level makes a virtual node of the neighbours that share a neighbourhood and a relation, which
    together are one ``edge_type`` :math:`k`; the high level joins the virtual nodes in their order:

    .. math::
        e_k^{v} = p \left( \{ h_u : u \in N(v), \tau(z_v, z_u) = k \} \right), \qquad
        h_v' = q_{k = 1}^{K} \left( W_k \, e_k^{v} \right)

    :math:`W_k`, which is ``weight[:, k]``, is the block of the paper's :math:`W` that meets virtual node
    :math:`k`. With
    ``high_level="cat"`` each virtual node keeps ``out_channels`` of its own in the output, as in the
    released program; with ``"mean"`` the output is :math:`\frac{1}{K} W m_v`, the paper's product up to
    the constant. The activation is left to the caller, as in other PyG layers.

    Args:
        in_channels: Width of the input features.
        out_channels: Width of the map of one virtual node.
        num_virtual_nodes: Number of edge types, :math:`K`.
        low_level: :math:`p`. ``"sum"`` is the sum weighted by ``edge_weight``; without weights it is
            normalised by the in-degrees of the pairs. ``"mean"``, ``"max"`` and ``"energy"`` (square root
            of the sum of squares, channel by channel) take no weights. Empty virtual nodes are zero.
        high_level: :math:`q`, ``"cat"`` or ``"mean"``.
        bias: Whether to learn a bias, added after :math:`q`.

    The neighbourhood is given as ``edge_index, edge_type, edge_weight``, or, several times as fast, as one
    :class:`Adjacency` made of the three beforehand, and no ``edge_type``.

    Shapes:
        - **input:** ``(num_nodes, in_channels)``, ``(2, num_edges)``, ``(num_edges)``, ``(num_edges)``
        - **output:** ``(num_nodes, num_virtual_nodes * out_channels)`` for ``"cat"``,
          ``(num_nodes, out_channels)`` for ``"mean"``

    Example:
        >>> conv = GeomConv(3, 4, num_virtual_nodes=2)
        >>> edge_index, edge_type = torch.tensor([[1, 0], [0, 1]]), torch.tensor([0, 1])
        >>> conv(torch.randn(2, 3), edge_index, edge_type).shape
        torch.Size([2, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_virtual_nodes: int,
        low_level: LowLevel = "sum",
        high_level: HighLevel = "cat",
        bias: bool = False,
    ) -> None:
        for name, value, choices in (
            ("low_level", low_level, LowLevel),
            ("high_level", high_level, HighLevel),
        ):
            if value not in get_args(choices):
                raise ValueError(
                    f"{name} is one of {', '.join(map(repr, get_args(choices)))}, got {value!r}."
                )
        super().__init__(aggr="sum" if low_level in ("sum", "energy") else low_level, node_dim=0)
        self.low_level: LowLevel = low_level
        self.high_level: HighLevel = high_level
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.num_virtual_nodes = num_virtual_nodes
        self.weight = Parameter(torch.empty(in_channels, num_virtual_nodes, out_channels))
        width = num_virtual_nodes * out_channels if high_level == "cat" else out_channels
        self.bias = Parameter(torch.empty(width)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the map of each virtual node anew (Glorot and Bengio 2010), the bias to zero."""
        super().reset_parameters()
        glorot(self.weight.transpose(0, 1))
        zeros(self.bias)

    def forward(
        self,
        x: AnyFeatures,
        edge_index: EdgeIndex | Adjacency,
        edge_type: EdgeType | None = None,
        edge_weight: EdgeWeight | None = None,
    ) -> Float[Tensor, "num_nodes out_width"]:
        """Aggregate over the structural neighbourhood."""
        if isinstance(edge_index, Adjacency):
            check_prepared(self, x, edge_index, edge_type, edge_weight)
            whole = x if isinstance(x, SparseFeatures) else x.unsqueeze(0)
            return layer(whole, edge_index, self.maps(), edge_weight=edge_weight).squeeze(0)
        if edge_type is None:
            raise ValueError(
                "GeomConv needs edge_type beside edge_index, got none. Pass both as StructuralNeighborhood "
                "wrote them, or an Adjacency in place of them."
            )
        num_nodes, count = x.size(0), self.num_virtual_nodes
        check_pairs(edge_index, edge_type, num_nodes, count, edge_weight)
        x = x.to_dense() if isinstance(x, SparseFeatures) else x
        source, target = edge_index[0], edge_index[1]
        slot = target * count + edge_type  # virtual node k of node v, in one axis
        if self.low_level in ("sum", "mean"):
            # Linear, so the map may come first: a pair then moves out_channels numbers, not in_channels.
            flat_weight = self.weight.view(self.in_channels, -1)
            mapped = (x @ flat_weight).view(num_nodes * count, self.out_channels)
            pairs, size = torch.stack([source * count + edge_type, slot]), (num_nodes * count,) * 2
            if self.low_level == "sum" and edge_weight is None:
                edge_weight = in_degree_norm(edge_index, num_nodes, x.dtype)
            factor = edge_weight if self.low_level == "sum" else None
            out = self.propagate(pairs, x=(mapped, mapped), edge_weight=factor, size=size)
            out = out.view(num_nodes, count, self.out_channels)
        else:
            pairs, size = torch.stack([source, slot]), (num_nodes, num_nodes * count)
            values = x.square() if self.low_level == "energy" else x
            out = self.propagate(pairs, x=(values, None), edge_weight=None, size=size)
            if self.low_level == "energy":
                out = square_root(out)
            out = torch.einsum("nki,iko->nko", out.view(num_nodes, count, self.in_channels), self.weight)
        joined = out.flatten(1) if self.high_level == "cat" else out.mean(1)
        return joined if self.bias is None else joined + self.bias

    def maps(self) -> Maps:
        """Return what the layer has learned, as one run of one."""
        bias = None if self.bias is None else self.bias.unsqueeze(0)
        return Maps(self.weight.unsqueeze(0), bias, self.low_level, self.high_level)

    def message(self, x_j: Tensor, edge_weight: OptTensor) -> Tensor:
        """Weigh what a pair carries."""
        return x_j if edge_weight is None else edge_weight.view(-1, 1) * x_j

    def __repr__(self) -> str:
        return (
            f"{self.__class__.__name__}({self.in_channels}, {self.out_channels}, "
            f"num_virtual_nodes={self.num_virtual_nodes}, low_level={self.low_level!r}, "
            f"high_level={self.high_level!r})"
        )


def check_prepared(
    conv: GeomConv,
    x: AnyFeatures,
    adjacency: Adjacency,
    edge_type: Tensor | None,
    edge_weight: Tensor | None,
) -> None:
    """Refuse what does not belong together: compiled loops would read beyond the end of an array.

    Example:
        >>> adjacency = Adjacency.of(torch.tensor([[1], [0]]), torch.tensor([0]), 2, 1)
        >>> check_prepared(GeomConv(3, 4, 1), torch.ones(2, 3), adjacency, None, None)
    """
    if edge_type is not None:
        raise ValueError(
            "GeomConv needs no edge_type beside an Adjacency, which holds it. Leave edge_type out, and "
            "pass edge_weight by name."
        )
    if adjacency.num_virtual_nodes != conv.num_virtual_nodes:
        raise ValueError(
            f"GeomConv has num_virtual_nodes={conv.num_virtual_nodes}, got an Adjacency with "
            f"{adjacency.num_virtual_nodes}. Build both from the same structural neighborhood."
        )
    if x.size(0) != adjacency.num_nodes or x.size(1) != conv.in_channels:
        raise ValueError(
            f"GeomConv needs features of {adjacency.num_nodes} nodes with {conv.in_channels} channels for "
            f"this Adjacency, got shape {list(x.shape)}. Pass the features of the graph it was made from."
        )
    if x.device != adjacency.device:
        raise ValueError(
            f"GeomConv needs features and Adjacency on one device, got {x.device} and {adjacency.device}. "
            f"Move one with .to({str(x.device)!r})."
        )
    if edge_weight is not None and edge_weight.shape != (adjacency.num_edges,):
        raise ValueError(
            f"GeomConv needs one entry of edge_weight for each of {adjacency.num_edges} pairs, got shape "
            f"{list(edge_weight.shape)}. Keep the order of the pairs that the Adjacency was made from."
        )
