import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch_geometric.data import Data

from geomgcn import embeddings
from geomgcn._names import canonical, is_reference, lookup
from geomgcn._types import EdgeIndex
from geomgcn.datasets import is_graph_file, load, read_graph
from geomgcn.experiments._spec import MODELS, Cell
from geomgcn.graphs import canonical_edges, check_features
from geomgcn.neighborhoods import RelatedPairs, Space, neighborhoods_of, shuffled, write_structure
from geomgcn.nn import GAT, GCN, MLP, GeomGCN
from geomgcn.relations import operator_by_name
from geomgcn.released import LEAKING, released_file, released_pairs
from geomgcn.released import SPACES as PUBLISHED_SPACES
from geomgcn.splits import Split, published_splits, random_splits
from geomgcn.training import gat_out_heads, row_normalize

RELEASED = "released:"
COORDINATES = "coordinates"
_COMMA, _PLUS = (re.compile(rf"{sign}(?![^(]*\))") for sign in (",", r"\+"))
"""Outside brackets; those inside belong to settings."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a cell needs to be trained.

    Attributes:
        notes: What a reader of the number must know, such as test labels in the relation ids.
        kind_of_splits: ``"published"`` or ``"random"``.
    """

    data: Data
    splits: list[Split]
    make_model: Callable[[], nn.Module]
    notes: tuple[str, ...] = ()
    kind_of_splits: str = "random"


def prepare(cell: Cell) -> Prepared:
    """Load, embed, relate: everything before the first epoch.

    Example:
        >>> prepare(Cell("karate", model="gcn", num_splits=2)).data.num_nodes
        34
    """
    check_spaces(cell)
    data = graph_of(cell.dataset)
    if data.x is None:
        raise ValueError(
            f"Training needs features, and {cell.dataset} has none. "
            f"Set x to an identity matrix, to degrees, or to measurements of your own."
        )
    check_features(data.x)
    splits = splits_of(data, cell)
    num_classes = int(data.y.max()) + 1
    if num_classes < 2:
        raise ValueError(
            f"Training needs at least two classes, and {cell.dataset} has {num_classes}. "
            f"Label nodes of a second one."
        )
    data.x = row_normalize(data.x)
    graph_edges, _ = canonical_edges(data.edge_index, data.num_nodes)
    notes: list[str] = []
    if canonical(cell.model) == "geom-gcn":
        parts = structure_parts(cell, data, graph_edges, notes)
        rules = cell.rules
        data = write_structure(
            copy.copy(data),
            parts,
            graph_edges,
            overlap=rules.overlap,
            norm=rules.norm,
            self_loops=rules.self_loops == "on",
        )
    else:
        notes += _ignored(cell)
        if cell.rules.baseline_edges == "symmetric":
            data.edge_index = graph_edges
    kind = "random" if cell.splits == "random" or data.get("train_mask") is None else "published"
    return Prepared(data, splits, _model_factory(cell, data, num_classes), tuple(notes), kind)


def check_spaces(cell: Cell) -> None:
    """Refuse spaces and operators that do not exist or do not go together, before anything is loaded.

    Example:
        >>> check_spaces(Cell("karate", neighborhood="isomop"))
        Traceback (most recent call last):
        ValueError: Unknown space 'isomop'. Did you mean 'isomap'? ...
    """
    if cell.relation is not None:
        operator_by_name(cell.relation)
    for spaces in parse_neighborhood(cell.neighborhood):
        published = [name for name in spaces if name.startswith(RELEASED)]
        if len(published) == 1:
            raise ValueError(
                f"Cannot mix {spaces[0]!r} and {spaces[1]!r}: published neighborhoods come without "
                f"positions. Take both spaces from the published files, or none."
            )
        if published and cell.relation is not None:
            raise ValueError(
                f"--relation {cell.relation} needs positions, and {published[0]!r} comes with relations. "
                f"Leave it out, or use a space of our own."
            )
        for name in published:
            released_file(cell.dataset, name.removeprefix(RELEASED))
        if not published:
            known = [*embeddings.known(), *(RELEASED + name for name in PUBLISHED_SPACES)]
            for name in spaces:
                kind, _ = embeddings.split_settings(name)
                if not _of_user(name):
                    lookup("space", kind, dict.fromkeys(known))
                if canonical(name) != COORDINATES:
                    embeddings.from_text(name)


def _ignored(cell: Cell) -> list[str]:
    """Return a note on options that the model of a cell does not look at."""
    plain = Cell(cell.dataset)
    names = ("neighborhood", "use", "control", "relation")
    given = [name for name in names if getattr(cell, name) != getattr(plain, name)]
    if not given:
        return []
    return [
        f"{MODELS[canonical(cell.model)]} has no structural neighborhood: {', '.join(given)} had no effect."
    ]


def graph_of(name: str, labels: bool = True) -> Data:
    """Load a data set by name, or a graph of the user's own from an ``.npz`` file.

    Args:
        labels: Refuse a file without labels.

    Example:
        >>> graph_of("karate").num_nodes
        34
    """
    return read_graph(name, labels) if is_graph_file(name) else load(name)


def splits_of(data: Data, cell: Cell) -> list[Split]:
    """Return the splits that a cell asks for.

    Example:
        >>> len(splits_of(graph_of("karate"), Cell("karate", num_splits=3)))
        3
    """
    has_published = data.get("train_mask") is not None
    if cell.splits == "published" and not has_published:
        raise ValueError(f"{cell.dataset} has no published splits. Use --splits random.")
    if cell.splits == "random" or not has_published:
        return random_splits(data.y, seed=cell.seed, num_splits=cell.num_splits or 10)
    splits = published_splits(data)
    wanted = cell.num_splits or len(splits)
    if wanted > len(splits):
        raise ValueError(
            f"{cell.dataset} has {len(splits)} published splits, got num_splits={wanted}. "
            f"Use --splits random for more."
        )
    return splits[:wanted]


def parse_neighborhood(text: str) -> list[tuple[str, str]]:
    """Return a pair of spaces, for N_g and for N_s, for each part of a neighbourhood's name.

    Example:
        >>> parse_neighborhood("released:isomap+released:poincare")
        [('released:isomap', 'released:poincare')]
        >>> parse_neighborhood("isomap(dim=2, landmarks=500),coordinates")
        [('isomap(dim=2, landmarks=500)', 'isomap(dim=2, landmarks=500)'), ('coordinates', 'coordinates')]
    """
    spaces = []
    for part in _COMMA.split(text):
        names = [name.strip() for name in _PLUS.split(part)]
        if len(names) > 2 or not all(names):
            raise ValueError(
                f"Cannot read the neighborhood {text!r}. Write a space, 'space+space' for N_g and N_s apart, "
                f"or several of these with commas between."
            )
        names = [name if _of_user(name) else _canonical_kind(name) for name in names]
        spaces.append((names[0], names[-1]))
    return spaces


def _canonical_kind(name: str) -> str:
    """Return a space with its kind in canonical form, and its settings as they are."""
    kind, bracket, settings = name.partition("(")
    return canonical(kind) + bracket + settings


def _of_user(name: str) -> bool:
    """Return whether a space is given as ``module:Class``."""
    return is_reference(name.partition("(")[0]) and not canonical(name).startswith(RELEASED)


def structure_parts(cell: Cell, data: Data, graph_edges: EdgeIndex, notes: list[str]) -> list[RelatedPairs]:
    """Return the neighbourhoods that a cell asks for, in the order of their virtual nodes.

    Args:
        notes: Remarks on the number to come are added here.

    Example:
        >>> data = graph_of("karate")
        >>> edges, _ = canonical_edges(data.edge_index, 34)
        >>> [part.name for part in structure_parts(Cell("karate"), data, edges, [])]
        ['graph', 'latent']
    """
    check_spaces(cell)
    parts: list[RelatedPairs] = []
    num_nodes = int(data.num_nodes or 0)
    for graph_space, latent_space in parse_neighborhood(cell.neighborhood):
        graph, latent = _both_neighborhoods(cell, data, graph_edges, graph_space, latent_space, notes)
        if cell.use != "latent":
            parts.append(graph)
        if cell.use != "graph":
            parts.append(shuffled(latent, num_nodes, cell.seed) if cell.control else latent)
    return parts


def _both_neighborhoods(
    cell: Cell, data: Data, graph_edges: EdgeIndex, graph_space: str, latent_space: str, notes: list[str]
) -> tuple[RelatedPairs, RelatedPairs]:
    if graph_space.startswith(RELEASED):
        return _published(cell, graph_space, latent_space, graph_edges, notes)
    first = space_of(graph_space, data, graph_edges, cell.relation)
    second = (
        first if latent_space == graph_space else space_of(latent_space, data, graph_edges, cell.relation)
    )
    found = neighborhoods_of(graph_edges, first, second)
    if found.max_coincident is not None and cell.use != "graph":
        notes.append(
            f"Coincident nodes exceed the size of N_g: each keeps {found.max_coincident} of them in N_s."
        )
    return found.graph, found.latent


def _published(
    cell: Cell, graph_space: str, latent_space: str, graph_edges: EdgeIndex, notes: list[str]
) -> tuple[RelatedPairs, RelatedPairs]:
    direction = cell.rules.direction
    names = [name.removeprefix(RELEASED) for name in (graph_space, latent_space)]
    graph, _ = released_pairs(cell.dataset, names[0], direction)
    _, latent = released_pairs(cell.dataset, names[1], direction)
    if (canonical(cell.dataset), canonical(names[0])) in LEAKING and cell.use != "latent":
        notes.append(
            f"The published relation ids of {names[0]} on {cell.dataset} carry labels, those of test nodes "
            f"too: this accuracy is no estimate of anything."
        )
    num_nodes = int(graph_edges.max()) + 1
    ours = graph_edges[0] * num_nodes + graph_edges[1]
    theirs = graph.edge_index[0] * num_nodes + graph.edge_index[1]
    if not torch.equal(ours.sort().values, theirs.sort().values):
        raise ValueError(
            f"The published neighborhood of {cell.dataset} does not fit its graph: the graph pairs differ. "
            f"Use the files that belong to this version of the data set."
        )
    return graph, latent


def space_of(name: str, data: Data, graph_edges: EdgeIndex, relation: str | None = None) -> Space:
    """Return the positions of a space, computed or from the cache; ``"coordinates"`` takes ``data.pos``.

    Lengths of edges are read from ``data.edge_length``, which belongs to the edges of ``data``.

    Example:
        >>> data = graph_of("karate")
        >>> space_of("isomap", data, canonical_edges(data.edge_index, 34)[0]).pos.shape
        torch.Size([34, 2])
    """
    operator = operator_by_name(relation) if relation else None
    embedding = embedding_of(name, data)
    num_nodes, length = int(data.num_nodes or 0), data.get("edge_length")
    edges = graph_edges if length is None else data.edge_index
    pos = embeddings.embed_cached(embedding, edges, num_nodes, edge_length=length)
    return Space(pos, embedding.geometry, operator)


def embedding_of(name: str, data: Data, **settings: int) -> embeddings.Embedding:
    """Return an embedding by name; ``"coordinates"`` takes ``data.pos``, and no other ``dim`` than it has.

    Args:
        name: May have settings, as in ``"poincare(epochs=30, seed=1)"``.

    Example:
        >>> embedding_of("isomap", graph_of("karate"), dim=3).dim
        3
    """
    if canonical(name) != COORDINATES:
        return embeddings.from_text(name, **settings)  # which refuses coordinates with settings
    if data.get("pos") is None:
        raise ValueError(
            "The space 'coordinates' needs positions in the graph, got none. Store them as 'pos'."
        )
    found = embeddings.Coordinates(data.pos)
    for key, value in settings.items():
        if key != "dim":
            raise ValueError(f"Positions that the graph brings have no {key}, got {value!r}. Leave it out.")
    if settings.get("dim", found.dim) != found.dim:
        raise ValueError(
            f"The graph brings positions in {found.dim} dimensions, got dim={settings['dim']!r}. "
            f"Leave it out."
        )
    return found


def _model_factory(cell: Cell, data: Data, num_classes: int) -> Callable[[], nn.Module]:
    channels, width, dropout = data.x.size(1), cell.width, cell.dropout
    makers: dict[str, Callable[[], nn.Module]] = {
        "geom-gcn": lambda: GeomGCN(channels, width, num_classes, data.num_virtual_nodes, dropout=dropout),
        "gcn": lambda: GCN(channels, width, num_classes, dropout=dropout),
        "gat": lambda: GAT(
            channels, width, num_classes, dropout=dropout, out_heads=gat_out_heads(cell.dataset)
        ),
        "mlp": lambda: MLP(channels, width, num_classes, dropout=dropout),
    }
    return makers[canonical(cell.model)]


def describe_parts(parts: Sequence[RelatedPairs], num_nodes: int) -> list[str]:
    """Return a line for each neighbourhood: how many pairs, how large on average, how many a relation.

    Example:
        >>> pair = RelatedPairs(torch.tensor([[1], [0]]), torch.tensor([2]), 4)
        >>> describe_parts([pair], num_nodes=2)
        ['graph: 1 pairs, 0.50 a node, by relation 0, 0, 1, 0']
    """
    lines = []
    for part in parts:
        counts = ", ".join(
            str(n) for n in torch.bincount(part.relation, minlength=part.num_relations).tolist()
        )
        size = part.edge_index.size(1)
        lines.append(f"{part.name}: {size} pairs, {size / num_nodes:.2f} a node, by relation {counts}")
    return lines
