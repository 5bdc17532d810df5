from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.nn.inits import glorot, reset, zeros

from geomgcn._types import EdgeIndex, EdgeType, EdgeWeight
from geomgcn.nn._adjacency import Adjacency, check_pairs, in_degree_norm
from geomgcn.nn._dropout import Dropout, draw_seeds
from geomgcn.nn._features import AnyFeatures, SparseFeatures, prepare_features
from geomgcn.nn._geom_conv import GeomConv, check_prepared
from geomgcn.nn._prepared import LowLevel, forward_runs

Features = Float[Tensor, "num_nodes in_channels"]
Logits = Float[Tensor, "num_nodes out_channels"]


class GeomGCN(nn.Module):
    """Layers of :class:`GeomConv`: concatenation, mean in the last (Section 3.3).

    Args:
        hidden_channels: Width of one virtual node; a hidden layer is ``num_virtual_nodes`` times as wide.
        num_virtual_nodes: What the structural neighbourhood says.
        dropout: Probability for each input of each layer.

    Example:
        >>> import torch
        >>> model = GeomGCN(3, 8, 2, num_virtual_nodes=9)
        >>> edge_index, edge_type = torch.tensor([[1, 0], [0, 1]]), torch.tensor([0, 1])
        >>> model(torch.randn(2, 3), edge_index, edge_type).shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_virtual_nodes: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        low_level: LowLevel = "sum",
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        widths = [in_channels] + [hidden_channels * num_virtual_nodes] * (num_layers - 1)
        self.convs = nn.ModuleList(
            GeomConv(
                width,
                out_channels if last else hidden_channels,
                num_virtual_nodes,
                low_level,
                "mean" if last else "cat",
                bias,
            )
            for width, last in zip(widths, _is_last(num_layers), strict=True)
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        reset(self.convs)

    @property
    def layers(self) -> list[GeomConv]:
        """The layers, first to last."""
        return [conv for conv in self.convs if isinstance(conv, GeomConv)]

    def drops(self, seeds: Int[Tensor, " num_layers"], device: torch.device) -> list[Dropout] | None:
        """Return the dropout of each layer's input, by a seed each."""
        if self.dropout == 0:
            return None
        return [Dropout.of(seed.view(1).to(device), [self.dropout]) for seed in seeds]

    def prepare(
        self,
        x: AnyFeatures,
        edge_index: EdgeIndex,
        edge_type: EdgeType,
        edge_weight: EdgeWeight | None = None,
    ) -> tuple[AnyFeatures, Adjacency]:
        """Return what :meth:`forward` takes in place of the same arguments, several times as fast.

        Sorts the pairs, and keeps features that are mostly zero as what is not; once, for all epochs.

        Example:
            >>> import torch
            >>> model = GeomGCN(3, 8, 2, num_virtual_nodes=9)
            >>> edge_index, edge_type = torch.tensor([[1, 0], [0, 1]]), torch.tensor([0, 1])
            >>> inputs = model.prepare(torch.randn(2, 3), edge_index, edge_type)
            >>> model(*inputs).shape
            torch.Size([2, 2])
        """
        first = self.layers[0]
        if edge_weight is None:
            check_pairs(edge_index, edge_type, x.size(0), first.num_virtual_nodes, None)
            exact = x.dtype if x.dtype == torch.float64 else torch.float32
            edge_weight = in_degree_norm(edge_index, x.size(0), exact)
        adjacency = Adjacency.of(edge_index, edge_type, x.size(0), first.num_virtual_nodes, edge_weight)
        return prepare_features(x) if first.low_level in ("sum", "mean") else x, adjacency

    def forward(
        self,
        x: AnyFeatures,
        edge_index: EdgeIndex | Adjacency,
        edge_type: EdgeType | None = None,
        edge_weight: EdgeWeight | None = None,
    ) -> Logits:
        """Return the logits of each node."""
        if isinstance(edge_index, Adjacency):
            check_prepared(self.layers[0], x, edge_index, edge_type, edge_weight)
            drops = self.drops(draw_seeds(len(self.convs)), x.device) if self.training else None
            maps = [conv.maps() for conv in self.layers]
            return forward_runs(x, edge_index, maps, drops, edge_weight).squeeze(0)
        h = x.to_dense() if isinstance(x, SparseFeatures) else x
        for i, conv in enumerate(self.layers):
            h = F.dropout(h if i == 0 else h.relu(), self.dropout, self.training)
            h = conv(h, edge_index, edge_type, edge_weight)
        return h


class GCN(nn.Module):
    """Layers of PyG's ``GCNConv``, called like :class:`GeomGCN`; relations and weights are ignored.

    Messages run along the edges as given, as in the released program. Pass symmetrised edges for the
    graph that Geom-GCN sees.

    Example:
        >>> import torch
        >>> GCN(3, 8, 2)(torch.randn(2, 3), torch.tensor([[1, 0], [0, 1]])).shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        widths = _widths(in_channels, hidden_channels, out_channels, num_layers)
        self.convs = nn.ModuleList(GCNConv(a, b, bias=bias) for a, b in pairwise(widths))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        reset(self.convs)

    def forward(
        self,
        x: Features,
        edge_index: EdgeIndex,
        edge_type: EdgeType | None = None,
        edge_weight: EdgeWeight | None = None,
    ) -> Logits:
        """Return the logits of each node."""
        for i, conv in enumerate(self.convs):
            x = F.dropout(x if i == 0 else x.relu(), self.dropout, self.training)
            x = conv(x, edge_index)
        return x


class GAT(nn.Module):
    """Layers of PyG's ``GATConv`` with ELU, called like :class:`GeomGCN`; relations and weights are ignored.

    Args:
        hidden_channels: Width of one head.
        heads: Heads of every layer but the last.
        out_heads: Heads of the last layer, averaged.

    Example:
        >>> import torch
        >>> GAT(3, 8, 2)(torch.randn(2, 3), torch.tensor([[1, 0], [0, 1]])).shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        heads: int = 8,
        out_heads: int = 1,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        widths = [in_channels] + [hidden_channels * heads] * (num_layers - 1)
        self.convs = nn.ModuleList(
            GATConv(width, out_channels, out_heads, concat=False, dropout=dropout)
            if last
            else GATConv(width, hidden_channels, heads, dropout=dropout)
            for width, last in zip(widths, _is_last(num_layers), strict=True)
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        reset(self.convs)

    def forward(
        self,
        x: Features,
        edge_index: EdgeIndex,
        edge_type: EdgeType | None = None,
        edge_weight: EdgeWeight | None = None,
    ) -> Logits:
        """Return the logits of each node."""
        for i, conv in enumerate(self.convs):
            x = F.dropout(x if i == 0 else F.elu(x), self.dropout, self.training)
            x = conv(x, edge_index)
        return x


class MLP(nn.Module):
    """A perceptron on each node's own features, called like :class:`GeomGCN`; edges are ignored.

    Example:
        >>> import torch
        >>> MLP(3, 8, 2)(torch.randn(2, 3)).shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        widths = _widths(in_channels, hidden_channels, out_channels, num_layers)
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=bias) for a, b in pairwise(widths))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew (Glorot and Bengio 2010, as the other models do)."""
        for layer in self.layers:
            glorot(layer.weight)
            zeros(layer.bias)

    def forward(
        self,
        x: Features,
        edge_index: EdgeIndex | None = None,
        edge_type: EdgeType | None = None,
        edge_weight: EdgeWeight | None = None,
    ) -> Logits:
        """Return the logits of each node."""
        for i, layer in enumerate(self.layers):
            x = F.dropout(x if i == 0 else x.relu(), self.dropout, self.training)
            x = layer(x)
        return x


def _widths(in_channels: int, hidden_channels: int, out_channels: int, num_layers: int) -> list[int]:
    return [in_channels, *(out_channels if last else hidden_channels for last in _is_last(num_layers))]


def _is_last(num_layers: int) -> list[bool]:
    if num_layers < 1:
        raise ValueError(
            f"A model needs at least one layer, got num_layers={num_layers!r}. "
            f"Pass num_layers=2 as in the paper."
        )
    return [False] * (num_layers - 1) + [True]
