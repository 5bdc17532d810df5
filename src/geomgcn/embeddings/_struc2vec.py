"""struc2vec: positions by the role of a node in the structure around it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import torch

from geomgcn import graphs
from geomgcn._progress import Progress
from geomgcn._types import EdgeIndex, Position
from geomgcn.embeddings._base import Embedding
from geomgcn.embeddings._context_graph import ISOLATED, Comparisons, context_graph, layers_of
from geomgcn.embeddings._degree_rings import DegreeRings, degree_rings
from geomgcn.embeddings._dtw import warp_all
from geomgcn.embeddings._kernels import over_pieces
from geomgcn.embeddings._skip_gram import drawing_table, train
from geomgcn.embeddings._walks import WALKS_PER_PIECE, walk_all

Mode = Literal["deterministic", "hogwild"]

LEARNING_RATE = 0.025
"""At the first walk; it falls in a straight line to zero, as in word2vec."""

PAIRS_PER_PIECE = 512
"""Of sequences, warped by one thread at a time."""

MOST_ENTRIES = 2**31 - 1
SECONDS_BETWEEN_COPIES = 0.5
"""Of the state that is kept in case the run is stopped."""


@dataclass(frozen=True)
class Struc2Vec(Embedding):
    r"""Positions by structural role (Ribeiro, Saverese and Figueiredo 2017; Section 3.1).

    .. math::
        f_k(u, v) = f_{k-1}(u, v) + \operatorname{DTW}(s(R_k(u)), s(R_k(v))), \qquad
        w_k(u, v) = e^{-f_k(u, v)}

    where s(R_k(u)) are the degrees, in order, of the nodes at k hops from u. Walks step in layer k in
    proportion to :math:`w_k`, or change the layer, up in proportion to :math:`\log(\Gamma_k(u) + e)` and
    down to 1; :math:`\Gamma_k(u)` counts the weights of u above the layer's average. Skip-gram with negative
    sampling brings nodes that occur near each other on walks to similar positions. Where two nodes are in
    the graph does not matter, nor whether a path joins them.

    Args:
        dim: Axes of the latent space.
    """

    dim: int = 2
    walks: int = 10
    length: int = 80
    window: int = 10
    negatives: int = 5
    epochs: int = 5
    layers: int | None = 6
    candidates: int | None = None
    seed: int = 0
    mode: Mode = "deterministic"

    version: ClassVar[int | None] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        least = {"walks": 1, "length": 2, "window": 1, "negatives": 1, "epochs": 1, "seed": 0}
        least |= {name: 1 - (name == "layers") for name in ("layers", "candidates") if getattr(self, name) is not None}
        for name, smallest in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
                raise ValueError(
                    f"Struc2Vec needs {name} to be a whole number from {smallest}, got {value!r}. "
                    f"The default is {name}={getattr(Struc2Vec, name)!r}."
                )
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode is 'deterministic' or 'hogwild', got {self.mode!r}.")

    def embed(self, edge_index: EdgeIndex, num_nodes: int, progress: Progress | None = None) -> Position:
        """Return the positions of all nodes; the canonical graph of ``edge_index`` counts."""
        progress = progress or Progress()
        canonical, _ = graphs.canonical_edges(edge_index.cpu(), num_nodes)
        source, target = canonical.numpy()
        indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=num_nodes))])
        found = degree_rings(
            indptr, target, self.layers, lambda done, total: progress.step("rings", done, total)
        )
        size = np.bincount(found.role)
        vectors = np.zeros((len(size), self.dim), np.float32)
        if len(size) > 1:
            vectors = self._learned(found, size, progress)
        return torch.from_numpy(vectors[found.role].astype(np.float64)).to(edge_index.device)

    def _learned(self, found: DegreeRings, size: np.ndarray, progress: Progress) -> np.ndarray:
        """Return the vectors of two roles or more."""
        kept = progress.kept() or {}
        candidates = self.candidates or int(np.ceil(2 * np.log2(size.sum())))
        layers = layers_of(found, candidates)
        comparisons = Comparisons(found, layers)
        cost = _warped(found, comparisons, kept, progress)
        each = (comparisons.distances(k, cost) for k in range(len(layers)))
        graph = context_graph(layers, each, size)
        del layers, comparisons
        random = np.random.Generator(np.random.PCG64(self.seed))
        total = -(-self.walks * len(graph.role) // WALKS_PER_PIECE)
        corpus = walk_all(
            graph, random, self.walks, self.length, lambda done: progress.step("walks", done, total)
        )
        return self._trained(corpus, len(size), random, kept, progress)

    def _trained(
        self,
        corpus: np.ndarray,
        num_roles: int,
        random: np.random.Generator,
        kept: dict[str, np.ndarray],
        progress: Progress,
    ) -> np.ndarray:
        """Return the vectors of all roles after all epochs, going on from what was kept."""
        vectors = (random.random((num_roles, self.dim), np.float32) - np.float32(0.5)) / np.float32(self.dim)
        contexts = np.zeros_like(vectors)
        pieces = [corpus[i : i + WALKS_PER_PIECE] for i in range(0, len(corpus), WALKS_PER_PIECE)]
        total = self.epochs * len(pieces)
        states = random.integers(2**64, size=(total, 1), dtype=np.uint64)
        table = drawing_table(np.bincount(corpus.reshape(-1), minlength=num_roles))
        begin = 0
        if "vectors" in kept:
            vectors, contexts, begin = kept["vectors"].copy(), kept["contexts"].copy(), int(kept["piece"][0])

        def work(piece: int) -> None:
            rates = LEARNING_RATE * (1 - np.array([piece, piece + 1]) / total)
            part = pieces[piece % len(pieces)]
            train(vectors, contexts, part, self.window, self.negatives, *table, rates, states[piece], self.dim)

        keep = _now_and_then(progress)

        def tell(done: int) -> None:
            keep(lambda: {**kept, "vectors": vectors, "contexts": contexts, "piece": np.array([begin + done])})
            progress.step("skip-gram", begin + done, total)

        if self.mode == "hogwild":
            over_pieces(work, range(begin, total), tell)
        else:
            for piece in range(begin, total):
                work(piece)
                tell(piece + 1 - begin)
        return vectors


def _warped(
    found: DegreeRings, comparisons: Comparisons, kept: dict[str, np.ndarray], progress: Progress
) -> np.ndarray:
    """Return the cost of warping each pair of sequences, going on from what was kept and adding to it."""
    ones, others = comparisons.ones, comparisons.others
    degrees = np.maximum(found.degree, ISOLATED)[found.kinds]
    counts = found.counts.astype(np.float64)
    cost, begin = np.zeros(len(ones)), 0
    if "cost" in kept:
        cost, begin = kept["cost"].copy(), int(kept["warped"][0])
    total = -(-len(ones) // PAIRS_PER_PIECE)

    def work(piece: int) -> None:
        part = slice(piece * PAIRS_PER_PIECE, (piece + 1) * PAIRS_PER_PIECE)
        warp_all(found.indptr, degrees, counts, ones[part], others[part], cost[part])

    keep = _now_and_then(progress)

    def tell(done: int) -> None:
        keep(lambda: {"cost": cost, "warped": np.array([begin + done])})
        progress.step("distances", begin + done, total)

    over_pieces(work, range(begin, total), tell)
    kept.update(cost=cost, warped=np.array([total]))
    return cost


def _now_and_then(progress: Progress) -> Callable[[Callable[[], dict[str, np.ndarray]]], None]:
    """Return a function that keeps a state, but not too often, since the state is copied."""
    last = time.monotonic()

    def keep(state: Callable[[], dict[str, np.ndarray]]) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_COPIES:
            progress.keep(**state())
            last = time.monotonic()

    return keep
