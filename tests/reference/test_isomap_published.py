"""Our Isomap and radius rule against the neighborhoods that the authors published."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from geomgcn.datasets import load
from geomgcn.embeddings import Isomap
from geomgcn.graphs import canonical_edges, components
from geomgcn.latent import latent_neighborhood
from geomgcn.neighborhoods import relate
from geomgcn.relations import Quadrants
from geomgcn.released import released_pairs

pytestmark = pytest.mark.reference


def keys(edge_index: torch.Tensor, num_nodes: int) -> np.ndarray:
    return np.unique((edge_index[0] * num_nodes + edge_index[1]).numpy())


def jaccard(one: np.ndarray, other: np.ndarray) -> float:
    return len(np.intersect1d(one, other)) / len(np.union1d(one, other))


def ours_and_published(name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Return positions, our latent pairs and the published ones, on the largest component."""
    data = load(name)
    edges, _ = canonical_edges(data.edge_index, data.num_nodes)
    component = components(edges, data.num_nodes)
    inside = component == component.bincount().argmax()
    number = inside.cumsum(0) - 1
    part = number[edges[:, inside[edges[0]]]]
    pos = Isomap().embed(part, int(inside.sum()))
    _, published = released_pairs(name, "isomap")
    kept = inside[published.edge_index].all(0)
    return (
        pos,
        latent_neighborhood(pos, part.size(1)).edge_index,
        number[published.edge_index[:, kept]],
        len(pos),
    )


@pytest.mark.parametrize("name", ["cora", "chameleon"])
def test_latent_pairs_overlap_the_published_ones(name):
    _, ours, published, num_nodes = ours_and_published(name)
    assert jaccard(keys(ours, num_nodes), keys(published, num_nodes)) >= 0.30
    renamed = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))
    assert jaccard(keys(renamed[ours], num_nodes), keys(published, num_nodes)) < 0.02  # chance


@pytest.mark.parametrize("name", ["cora", "chameleon"])
def test_relations_of_edges_agree_up_to_the_axes(name):
    """Published axes may point elsewhere, so the best of the eight symmetries of the square counts."""
    data = load(name)
    graph, _ = released_pairs(name, "isomap")
    pos = Isomap().embed(data.edge_index, data.num_nodes)
    agreement = []
    for swap in (False, True):
        for signs in ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)):
            turned = (pos.flip(1) if swap else pos) * torch.tensor(signs, dtype=torch.float64)
            found = relate(graph.edge_index, turned, Quadrants())
            agreement.append(float((found.relation == graph.relation).double().mean()))
    assert max(agreement) > 0.4  # 0.25 by chance


PUBMED = """
import resource, time, torch
torch.set_num_threads(1)
from geomgcn.datasets import load
from geomgcn.embeddings import Isomap
Isomap().embed(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)  # compile
data = load("pubmed")
begin = time.process_time()
Isomap().embed(data.edge_index, data.num_nodes)
print(time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
def test_isomap_of_pubmed_takes_less_than_a_gigabyte_and_ten_seconds():
    result = subprocess.run([sys.executable, "-c", PUBMED], capture_output=True, text=True, check=True)
    seconds, peak = map(float, result.stdout.split())
    assert peak < 1e9
    assert seconds < 10
