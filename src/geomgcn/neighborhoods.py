r"""The structural neighbourhood: pairs with relations, merged into one typed edge list (Section 2.1).

Three steps, each a pure function: :func:`relate` reads the relation of each pair off positions,
:func:`structural_edges` numbers the virtual nodes of several neighbourhoods through, and
:func:`graph_norm` or :func:`union_norm` gives each pair its weight in GCN's normalised sum.
:class:`StructuralNeighborhood` does all of it for a PyG ``Data`` with positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from jaxtyping import Int
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from geomgcn._types import Distance, EdgeIndex, EdgeType, EdgeWeight, Position, Relation
from geomgcn.distances import Euclidean, Tangent
from geomgcn.graphs import canonical_edges, check_data, check_edges, check_positions
from geomgcn.latent import latent_neighborhood
from geomgcn.relations import PolarQuadrants, Quadrants, RelationOperator

Overlap = Literal["both", "graph", "latent"]
Norm = Literal["graph", "union"]
Use = Literal["graph", "latent"]

# Pairs whose relation is computed at once: bounds memory, changes nothing.
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class RelatedPairs:
    """One neighbourhood of every node: its ordered pairs and the relation of each.

    Attributes:
        edge_index: Source -> target: the target gathers.
        relation: Where the source lies, seen from the target; below ``num_relations``.
        name: ``"graph"`` or ``"latent"``, for tables and pictures.
    """

    edge_index: EdgeIndex
    relation: Relation
    num_relations: int
    name: str = "graph"


@dataclass(frozen=True, eq=False)
class StructuralEdges:
    """The structural neighbourhood in PyG's terms; ``RGCNConv`` takes it as it is.

    Attributes:
        edge_type: Virtual node of each pair: relations of the first neighbourhood, then of the
            second, and so on; self-loops take the last id.
        num_virtual_nodes: How many there are, empty ones included.
        names: What each virtual node is.
    """

    edge_index: EdgeIndex
    edge_type: EdgeType
    num_virtual_nodes: int
    names: tuple[str, ...] = ()


def relate(
    edge_index: EdgeIndex, pos: Position, operator: RelationOperator, name: str = "graph"
) -> RelatedPairs:
    """Read the relation of each pair off the positions of its ends.

    Example:
        >>> pos = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
        >>> relate(torch.tensor([[1, 0], [0, 1]]), pos, Quadrants()).relation
        tensor([1, 2])
    """
    check_edges(edge_index, pos.size(0))
    check_positions(pos)
    relation = torch.empty(edge_index.size(1), dtype=torch.long, device=edge_index.device)
    for begin in range(0, edge_index.size(1), _BLOCK):
        source, target = edge_index[:, begin : begin + _BLOCK]
        found = operator(pos[source], pos[target])
        if found.dtype != torch.long or found.shape != source.shape:
            raise ValueError(
                f"{type(operator).__name__} needs to return one int64 id a pair, got {found.dtype} of shape "
                f"{list(found.shape)} for {len(source)} pairs. End it with .long(), and keep one entry a row."
            )
        relation[begin : begin + _BLOCK] = found
    _check_relation(relation, operator.num_relations, type(operator).__name__)
    return RelatedPairs(edge_index, relation, operator.num_relations, name)


def _check_relation(relation: Tensor, num_relations: int, owner: str) -> None:
    bad = (relation < 0) | (relation >= num_relations)
    if bool(bad.any()):
        raise ValueError(
            f"{owner} needs relations from 0 to {num_relations - 1}, got {int(relation[bad][0])} at pair "
            f"{int(bad.nonzero()[0])}. Return ids below num_relations."
        )


def structural_edges(
    parts: Sequence[RelatedPairs],
    num_nodes: int,
    *,
    overlap: Overlap = "both",
    self_loops: bool = True,
) -> StructuralEdges:
    """Merge neighbourhoods into one typed edge list; virtual-node ids run on.

    Args:
        parts: Any number of neighbourhoods, of one space or several.
        overlap: What to do with a pair in several neighbourhoods. ``"both"`` counts it in each, as the
            paper does; ``"graph"`` keeps it in the first only, ``"latent"`` in the last only, as the
            released program does.
        self_loops: Give each node's own features a virtual node of their own.

    Example:
        >>> pair = RelatedPairs(torch.tensor([[1], [0]]), torch.tensor([2]), 4)
        >>> edges = structural_edges([pair, pair], num_nodes=2)
        >>> edges.edge_type, edges.num_virtual_nodes
        (tensor([2, 6, 8, 8]), 9)
    """
    _check_choice("overlap", overlap, Overlap)
    index, types, names = [], [], []
    first_id = 0
    device = parts[0].edge_index.device if parts else torch.device("cpu")
    for part in parts:
        check_edges(part.edge_index, num_nodes)
        _check_relation(part.relation, part.num_relations, f"The {part.name} neighborhood")
        index.append(part.edge_index)
        types.append(part.relation + first_id)
        names += [f"{part.name} {i}" for i in range(part.num_relations)]
        first_id += part.num_relations
    edge_index = torch.cat([*index, torch.zeros(2, 0, dtype=torch.long, device=device)], dim=1)
    edge_type = torch.cat([*types, torch.zeros(0, dtype=torch.long, device=device)])
    if overlap != "both":
        kept = _one_of_each_pair(edge_index, num_nodes, last=overlap == "latent")
        edge_index, edge_type = edge_index[:, kept], edge_type[kept]
    if self_loops:
        loops = torch.arange(num_nodes, device=device)
        edge_index = torch.cat([edge_index, torch.stack([loops, loops])], dim=1)
        edge_type = torch.cat([edge_type, torch.full_like(loops, first_id)])
        names.append("self")
        first_id += 1
    return StructuralEdges(edge_index, edge_type, first_id, tuple(names))


def _one_of_each_pair(edge_index: EdgeIndex, num_nodes: int, last: bool) -> Tensor:
    """Return, in order, where each distinct pair stands for the first or the last time."""
    key = edge_index[0] * num_nodes + edge_index[1]
    _, inverse = key.unique(return_inverse=True)
    place = torch.arange(key.numel(), device=key.device)
    start = place.new_full((int(inverse.max()) + 1 if len(key) else 0,), -1 if last else key.numel())
    chosen = start.scatter_reduce(0, inverse, place, "amax" if last else "amin")
    return chosen.sort().values


def _check_choice(name: str, value: str, choices: object) -> None:
    if value not in get_args(choices):
        raise ValueError(f"{name} is one of {', '.join(map(repr, get_args(choices)))}, got {value!r}.")


def graph_norm(
    edge_index: EdgeIndex, graph_edges: Int[Tensor, "2 num_graph_edges"], num_nodes: int
) -> EdgeWeight:
    r"""Return the weight of each pair in GCN's sum, by the degrees of the graph (Section 3.3).

    .. math:: (\deg(v) + 1)^{-1/2} \, (\deg(u) + 1)^{-1/2}

    The paper prints the power +1/2, which is taken for a slip: its program, like GCN, uses -1/2. One is
    added for the self-loop, as in GCN, so that isolated nodes have a finite weight.

    Args:
        graph_edges: The graph, both directions, no self-loops.

    Example:
        >>> graph_norm(torch.tensor([[0], [1]]), torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        tensor([0.5000])
    """
    return _norm(edge_index, 1 + torch.bincount(graph_edges[1], minlength=num_nodes))


def union_norm(edge_index: EdgeIndex, num_nodes: int) -> EdgeWeight:
    r"""Return the weight of each pair by the in-degrees of the pairs, as the released program does.

    Nodes that receive nothing have weight zero.

    Example:
        >>> union_norm(torch.tensor([[0, 0, 1], [0, 1, 1]]), num_nodes=2)
        tensor([1.0000, 0.7071, 0.5000])
    """
    return _norm(edge_index, torch.bincount(edge_index[1], minlength=num_nodes))


def _norm(edge_index: EdgeIndex, degree: Tensor) -> EdgeWeight:
    power = degree.to(torch.get_default_dtype()).pow(-0.5)
    power = power.masked_fill(degree == 0, 0.0)
    return power[edge_index[0]] * power[edge_index[1]]


def shuffled(part: RelatedPairs, num_nodes: int, seed: int = 0) -> RelatedPairs:
    """Return the control: the same pairs and relations, with the nodes renamed at random.

    It has the size, the degrees and the shape of the real neighbourhood, and none of its meaning. What
    a model gains over this control is what the geometry adds.

    Example:
        >>> pairs = RelatedPairs(torch.tensor([[1, 0], [0, 1]]), torch.tensor([1, 2]), 4, "latent")
        >>> shuffled(pairs, num_nodes=5, seed=0).edge_index.shape
        torch.Size([2, 2])
    """
    renamed = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(seed))
    return replace(part, edge_index=renamed.to(part.edge_index.device)[part.edge_index])


@dataclass(frozen=True, eq=False)
class Space:
    """Positions with the distance and the relation operator that suit them.

    Example:
        >>> Space(torch.zeros(3, 2), geometry="poincare").resolved_relation
        PolarQuadrants()
    """

    pos: Position
    geometry: str = "euclidean"
    relation: RelationOperator | None = None
    distance: Distance | None = None

    def __post_init__(self) -> None:
        if self.geometry not in ("euclidean", "poincare"):
            raise ValueError(f"geometry is 'euclidean' or 'poincare', got {self.geometry!r}.")

    @property
    def resolved_relation(self) -> RelationOperator:
        """The operator given, or the paper's for the geometry."""
        return self.relation or (PolarQuadrants() if self.geometry == "poincare" else Quadrants())

    @property
    def resolved_distance(self) -> Distance:
        """The distance given, or the paper's for the geometry."""
        return self.distance or (Tangent() if self.geometry == "poincare" else Euclidean())


@dataclass(frozen=True, eq=False)
class SpaceNeighborhoods:
    """Both neighbourhoods of a space, and how the latent one came out.

    Attributes:
        radius: The radius that was chosen for the latent neighbourhood.
        max_coincident: See :class:`~geomgcn.latent.LatentNeighborhood`.
    """

    graph: RelatedPairs
    latent: RelatedPairs
    radius: float
    max_coincident: int | None


def neighborhoods_of(
    graph_edges: EdgeIndex, space: Space, latent_space: Space | None = None
) -> SpaceNeighborhoods:
    """Return N_g and N_s with their relations, N_s as large as N_g on average (Section 3.1).

    Args:
        graph_edges: The graph in canonical form, see :func:`~geomgcn.graphs.canonical_edges`.
        latent_space: A space of its own for N_s, as in Geom-GCN-IP; the same space if left out.

    Example:
        >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> found = neighborhoods_of(edges, Space(torch.tensor([[0.0, 0.0], [1.0, 0.0], [3.0, 1.0]])))
        >>> found.latent.edge_index.size(1)
        4
    """
    latent_space = latent_space or space
    near = latent_neighborhood(latent_space.pos, graph_edges.size(1), latent_space.resolved_distance)
    return SpaceNeighborhoods(
        relate(graph_edges, space.pos, space.resolved_relation, "graph"),
        relate(near.edge_index, latent_space.pos, latent_space.resolved_relation, "latent"),
        near.radius,
        near.max_coincident,
    )


class StructuralNeighborhood(BaseTransform):
    """Replace the edges of a graph with positions by its structural neighbourhood.

    Writes ``edge_index``, ``edge_type``, ``edge_weight`` and ``num_virtual_nodes``, and ``radius``, the
    one it chose. Other attributes of edges belong to the edges of the graph and are left out. The input is
    left as it is.

    Args:
        relation: Relation operator; by default the paper's for ``data.geometry``.
        distance: Distance of the latent space; by default the paper's for ``data.geometry``.
        use: Both neighbourhoods, or one of them (the paper's -g and -s).
        overlap: See :func:`structural_edges`.
        norm: Weights by the degrees of the ``"graph"`` or of the ``"union"`` of all pairs.
        latent_pos: Name of the attribute with the positions for N_s, for two spaces at once; its
            geometry is read from the same name with ``pos`` replaced by ``geometry``.

    Example:
        >>> data = Data(pos=torch.rand(5, 2), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
        >>> StructuralNeighborhood()(data).num_virtual_nodes
        9
    """

    def __init__(
        self,
        relation: RelationOperator | None = None,
        distance: Distance | None = None,
        use: Sequence[Use] = ("graph", "latent"),
        overlap: Overlap = "both",
        norm: Norm = "graph",
        self_loops: bool = True,
        latent_pos: str = "pos",
    ) -> None:
        if isinstance(use, str):
            raise TypeError(f"use is a sequence of names, got {use!r}. Pass use=({use!r},).")
        for name in use:
            _check_choice("use", name, Use)
        _check_choice("overlap", overlap, Overlap)
        _check_choice("norm", norm, Norm)
        self.relation, self.distance, self.use, self.overlap = relation, distance, tuple(use), overlap
        self.norm, self.self_loops, self.latent_pos = norm, self_loops, latent_pos

    def forward(self, data: Data) -> Data:
        """Write the structural neighbourhood into a shallow copy of ``data``."""
        check_data(data, type(self).__name__)
        if "ptr" in data:
            raise ValueError(
                "StructuralNeighborhood needs one graph, got a batch, whose graphs share one latent space. "
                "Apply it to each graph before they are batched."
            )
        space, latent_space = self._space(data, "pos"), self._space(data, self.latent_pos)
        graph_edges, _ = canonical_edges(data.edge_index, space.pos.size(0))
        found = neighborhoods_of(graph_edges, space, latent_space)
        parts = [part for part in (found.graph, found.latent) if part.name in self.use]
        data.radius = found.radius
        return write_structure(
            data, parts, graph_edges, overlap=self.overlap, norm=self.norm, self_loops=self.self_loops
        )

    def _space(self, data: Data, name: str) -> Space:
        pos = data.get(name)
        if pos is None:
            raise ValueError(
                f"StructuralNeighborhood needs positions in data.{name}, got none. "
                f"Embed the graph first, for example with Isomap(dim=2)(data)."
            )
        if pos.dim() != 2 or pos.size(0) != data.num_nodes:
            raise ValueError(
                f"StructuralNeighborhood needs one row of data.{name} for each of {data.num_nodes} nodes, "
                f"got shape {list(pos.shape)}. Embed this very graph, or give every node a position."
            )
        geometry = data.get(name.replace("pos", "geometry"), "euclidean")
        return Space(pos, geometry, self.relation, self.distance)

    def __repr__(self) -> str:
        shown = f"use={self.use}, overlap={self.overlap!r}, norm={self.norm!r}"
        return f"{type(self).__name__}(relation={self.relation}, {shown})"


def write_structure(
    data: Data,
    parts: Sequence[RelatedPairs],
    graph_edges: EdgeIndex,
    *,
    overlap: Overlap = "both",
    norm: Norm = "graph",
    self_loops: bool = True,
) -> Data:
    """Merge neighbourhoods, weigh their pairs, and write the result into ``data``.

    Example:
        >>> pair = RelatedPairs(torch.tensor([[1], [0]]), torch.tensor([2]), 4)
        >>> write_structure(Data(num_nodes=2), [pair], torch.tensor([[0, 1], [1, 0]])).edge_weight
        tensor([0.5000, 0.5000, 0.5000])
    """
    _check_choice("norm", norm, Norm)
    num_nodes = int(data.num_nodes or 0)
    edges = structural_edges(parts, num_nodes, overlap=overlap, self_loops=self_loops)
    for name in [name for name in data.keys() if data.is_edge_attr(name)]:  # noqa: SIM118 - not a mapping
        del data[name]  # one row for each old edge: nothing could be said of the new ones
    data.edge_index, data.edge_type = edges.edge_index, edges.edge_type
    data.num_virtual_nodes = edges.num_virtual_nodes
    if norm == "graph":
        data.edge_weight = graph_norm(edges.edge_index, graph_edges, num_nodes)
    else:
        data.edge_weight = union_norm(edges.edge_index, num_nodes)
    return data
