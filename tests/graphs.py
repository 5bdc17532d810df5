"""Tiny graphs that several tests share."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import jaxtyping
import torch
from torch import Tensor
from torch_geometric.data import Data

from geomgcn.splits import Split


@contextmanager
def unchecked() -> Iterator[None]:
    """Switch off the checking of signatures, as users have it, to see our own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def undirected(*pairs: tuple[int, int]) -> Tensor:
    """Return both directions of each pair, sorted: the canonical form."""
    both = sorted([(a, b) for a, b in pairs] + [(b, a) for a, b in pairs])
    return torch.tensor(both, dtype=torch.long).view(-1, 2).t().contiguous()


def no_edges() -> Tensor:
    return torch.zeros(2, 0, dtype=torch.long)


def path(num_nodes: int) -> Tensor:
    return undirected(*((i, i + 1) for i in range(num_nodes - 1)))


def star(num_leaves: int) -> Tensor:
    """Node 0 in the middle."""
    return undirected(*((0, i + 1) for i in range(num_leaves)))


def connected_random(num_nodes: int, num_extra: int, seed: int) -> Tensor:
    """A random tree and some more edges, so that it is connected and has few symmetries."""
    rng = random.Random(seed)
    pairs = {(rng.randrange(i), i) for i in range(1, num_nodes)}
    pairs |= {tuple(sorted(rng.sample(range(num_nodes), 2))) for _ in range(num_extra)}
    return undirected(*sorted(pairs))


def mask(num_nodes: int, nodes: list[int] | range) -> Tensor:
    result = torch.zeros(num_nodes, dtype=torch.bool)
    result[list(nodes)] = True
    return result


def classified(num_nodes: int = 30, num_classes: int = 3, seed: int = 0) -> tuple[Data, Split]:
    """A random graph with noisy features of its classes, and a split by thirds."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(num_nodes) % num_classes
    x = torch.nn.functional.one_hot(y, num_classes).float()
    x = torch.cat([x, torch.zeros(num_nodes, 3)], dim=1)
    x = x + 0.8 * torch.randn(x.shape, generator=generator)
    data = Data(x=x, y=y, edge_index=connected_random(num_nodes, num_nodes, seed))
    third = num_nodes // 3
    parts = (range(third), range(third, 2 * third), range(2 * third, num_nodes))
    return data, Split(*(mask(num_nodes, part) for part in parts))
