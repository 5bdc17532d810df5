"""What training is measured on: the nine data sets, and generated graphs of any size."""

from dataclasses import dataclass, fields

import torch

NINE = ("texas", "wisconsin", "cornell", "cora", "citeseer", "chameleon", "actor", "squirrel", "pubmed")
LATENT_REACH = 1000
"""Latent pairs of generated graphs are that near to each other in the order of nodes, as in a space."""


@dataclass(eq=False)
class Task:
    """A graph with all that a model is trained on.

    Attributes:
        width: Hidden width of one virtual node.
        graph_edges: Both directions, no self-loops: what the peers without relations get.
        edge_index, edge_type, edge_weight: The structural neighborhood.
        train, val: Numbers of the nodes of the first split.
        parts: The ten published splits, 3 x num_nodes x 10, where there are any.
        widths: Hidden widths of the paper's GCN and GAT, and GAT's heads in the last layer.
    """

    x: torch.Tensor
    y: torch.Tensor
    train: torch.Tensor
    val: torch.Tensor
    graph_edges: torch.Tensor
    edge_index: torch.Tensor
    edge_type: torch.Tensor
    edge_weight: torch.Tensor
    num_virtual_nodes: int
    width: int
    num_classes: int
    parts: torch.Tensor | None = None
    widths: tuple[int, int, int] = (16, 8, 1)

    @property
    def num_nodes(self):
        return self.x.size(0)

    def to(self, device):
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Task(**{name: _moved(value, device) for name, value in values.items()})

    def sizes(self):
        """Return what a table says about the graph."""
        return {
            "n": self.num_nodes,
            "E": self.graph_edges.size(1),
            "pairs": self.edge_index.size(1),
            "features": self.x.size(1),
            "nonzeros": int(self.x.count_nonzero()),
            "R": self.num_virtual_nodes,
            "m": self.width,
            "classes": self.num_classes,
        }


def _moved(value, device):
    return value.to(device) if isinstance(value, torch.Tensor) else value


def of_dataset(name):
    """Return a data set with the structural neighborhood of its Isomap space, as in the paper."""
    from geomgcn.experiments import Cell, graph_of, prepare
    from geomgcn.graphs import canonical_edges
    from geomgcn.training import gat_out_heads, hidden_channels

    ready = prepare(Cell(name, splits="published"))
    data, splits = ready.data, ready.splits
    raw = graph_of(name)
    return Task(
        x=data.x,
        y=data.y,
        train=splits[0].train.nonzero().view(-1),
        val=splits[0].val.nonzero().view(-1),
        graph_edges=canonical_edges(raw.edge_index, raw.num_nodes)[0],
        edge_index=data.edge_index,
        edge_type=data.edge_type,
        edge_weight=data.edge_weight,
        num_virtual_nodes=data.num_virtual_nodes,
        width=hidden_channels(name, "geom-gcn"),
        num_classes=int(data.y.max()) + 1,
        parts=torch.stack(
            [torch.stack([getattr(split, part) for split in splits], 1) for part in ("train", "val", "test")]
        ),
        widths=(hidden_channels(name, "gcn"), hidden_channels(name, "gat"), gat_out_heads(name)),
    )


def save(task, path):
    """Write a task, with features as their nonzeros and small numbers, so that a folder of them travels."""
    values = {field.name: getattr(task, field.name) for field in fields(task)}
    place = task.x.nonzero(as_tuple=True)
    values["x"] = (task.x.shape, torch.stack(place).int(), task.x[place])
    for name in ("graph_edges", "edge_index", "edge_type"):
        values[name] = values[name].int()
    torch.save(values, path)


def load(path):
    """Return a task that :func:`save` wrote."""
    values = torch.load(path)
    shape, place, entries = values["x"]
    values["x"] = torch.zeros(shape).index_put_(tuple(place.long()), entries)
    for name in ("graph_edges", "edge_index", "edge_type"):
        values[name] = values[name].long()
    return Task(**values)


def generated(size, device="cpu"):
    """Return a graph with skewed degrees, as many latent pairs as edges, and dense random features.

    Args:
        size: ``n`` nodes, ``E`` directed edges, ``R`` virtual nodes (an odd number: as many for either
            neighborhood, and the node itself), ``m``, ``features``, ``classes``.
    """
    n, relations = size["n"], size["R"] // 2
    generator = torch.Generator(device).manual_seed(0)

    def uniform(*shape):
        return torch.rand(*shape, generator=generator, device=device)

    def below(bound, count):
        return torch.randint(bound, (count,), generator=generator, device=device)

    count = size["E"] // 2
    # One end of each edge falls off with the square root of its number; float32 has too few numbers.
    skewed = (n * uniform(count).double().square()).long().clamp_(max=n - 1)
    half = torch.stack([skewed, (skewed + 1 + below(n - 1, count)) % n])
    graph_edges = torch.cat([half, half.flip(0)], 1)
    target = below(n, 2 * count)
    reach = min(LATENT_REACH, n - 1)
    latent = torch.stack([(target + 1 + below(reach, 2 * count)) % n, target])
    loops = torch.arange(n, device=device)
    edge_index = torch.cat([graph_edges, latent, loops.expand(2, -1)], 1)
    del latent, target, skewed, half
    kinds = below(relations, 4 * count)
    kinds[2 * count :] += relations
    degree = 1 + torch.bincount(graph_edges[1], minlength=n)
    power = degree.float().rsqrt()
    chosen = uniform(n)
    return Task(
        x=torch.randn(n, size["features"], generator=generator, device=device),
        y=below(size["classes"], n),
        train=(chosen < 0.6).nonzero().view(-1),
        val=(chosen > 0.8).nonzero().view(-1),
        graph_edges=graph_edges,
        edge_index=edge_index,
        edge_type=torch.cat([kinds, torch.full_like(loops, 2 * relations)]),
        edge_weight=power[edge_index[0]] * power[edge_index[1]],
        num_virtual_nodes=2 * relations + 1,
        width=size["m"],
        num_classes=size["classes"],
    )
