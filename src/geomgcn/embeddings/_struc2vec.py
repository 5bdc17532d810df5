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
from geomgcn.embeddings._settings import check_whole
from geomgcn.embeddings._skip_gram import drawing_table, train
from geomgcn.embeddings._walks import WALKS_PER_PIECE, walk_all

Mode = Literal["deterministic", "hogwild"]

LEARNING_RATE = 0.025
"""At the first walk; it falls in a straight line to zero, as in word2vec."""

PAIRS_PER_PIECE = 512
"""Of sequences, warped by one thread at a time."""

MOST_NODES = 2**31 - 1
SECONDS_BETWEEN_COPIES = 0.5
"""Of the state that is kept in case the run is stopped."""


@dataclass(frozen=True)
class Struc2Vec(Embedding):
    r"""Positions by role: nodes whose surroundings are alike (Ribeiro et al. 2017, struc2vec; Section 3.1).

    .. math::
        f_k(u, v) = f_{k-1}(u, v) + \operatorname{DTW}\bigl(s(R_k(u)), s(R_k(v))\bigr), \qquad
        w_k(u, v) = e^{-f_k(u, v)}

    where s(R_k(u)) are the ordered degrees of the nodes at k hops from u, as pairs of a degree a and how
    often it occurs, n; warping one pair onto another costs (max(a, a') / min(a, a') - 1) max(n, n'), and the
    path of least cost is found exactly. A walk steps in layer k in proportion to :math:`w_k` with a
    probability of .3; otherwise it changes layers, up in proportion to :math:`\log(\Gamma_k(u) + e)` and down
    to 1, where :math:`\Gamma_k(u)` is the number of weights of u above the layer's average. Skip-gram with
    negative sampling (learning rate from .025 to 0) turns walks into positions. Where nodes are in the graph
    does not matter, nor whether a path joins them, so components are not laid out. What the original leaves
    open:

    * **Equal nodes.** Nodes whose rings have the same degrees in all layers share one vector, and so one
      position, bit by bit: nothing but chance would tell them apart. Nodes whose rings 0 to k are equal are
      compared with others as one in layer k.
    * **Candidates.** Each of those is compared with the others (2 log2 n of them in each layer, as in OPT2)
      whose sums of log degrees in the rings 0 to k are nearest; the original looks at ring 0 only.
      Averages of weights are over the pairs that are compared.
    * **Degree 0** counts as 1/2 in the ratio. Isolated nodes are equal, so they lie together.
    * **Changes of layers** go the only way there is where a layer above or below has no neighbors for u.
    * **Negatives** are drawn once for each place on a walk, and serve all its neighbors.
    * **Threads.** Only skip-gram depends on the order of steps. ``"deterministic"`` takes one after another:
      the same seed gives the same bytes. ``"hogwild"`` lets all threads step at once, without locks; no two
      runs are the same.

    Takes :math:`O(nm/64 + n^2)` time for the rings, and time linear in nodes x walks x length x window x
    negatives x epochs for skip-gram. Memory holds degree sequences, pairs and walks;
    with ``layers=None`` also 16 bytes for each node and layer.

    Args:
        dim: Axes of the latent space.
        walks: From each node.
        length: Nodes of a walk.
        window: Up to how many places apart nodes on a walk are neighbors.
        negatives: Random nodes for each neighbor.
        epochs: How often all walks are gone through.
        layers: The largest k (OPT3), 6 as in the example of the original program; None for the diameter.
        candidates: For each node and layer; None for 2 log2 n. All pairs from n - 1 on.
        mode: ``"deterministic"`` or ``"hogwild"``.

    Example:
        >>> path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
        >>> pos = Struc2Vec(epochs=1).embed(path, num_nodes=5)
        >>> bool((pos[0] == pos[4]).all()), bool((pos[0] == pos[2]).all())
        (True, False)
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
        check_whole(self, walks=1, length=2, window=1, negatives=1, epochs=1, seed=0)
        least = {"layers": 0, "candidates": 1}
        check_whole(self, **{key: n for key, n in least.items() if getattr(self, key) is not None})
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode is 'deterministic' or 'hogwild', got {self.mode!r}.")

    def embed(self, edge_index: EdgeIndex, num_nodes: int, progress: Progress | None = None) -> Position:
        """Return the positions of all nodes; the canonical graph of ``edge_index`` counts."""
        progress = progress or Progress()
        if num_nodes > MOST_NODES:
            raise ValueError(
                f"Struc2Vec needs at most {MOST_NODES} nodes, got {num_nodes}. Embed a part of the graph."
            )
        rows = graphs.adjacency(edge_index, num_nodes)
        found = degree_rings(
            rows.indptr, rows.indices, self.layers, lambda done, total: progress.step("rings", done, total)
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
        graph = context_graph(layers, comparisons.distances(cost), size)
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
            train(vectors, contexts, part, self.window, self.negatives, table, rates, states[piece])

        keep = _now_and_then(progress)

        def tell(done: int) -> None:
            keep(
                lambda: {**kept, "vectors": vectors, "contexts": contexts, "piece": np.array([begin + done])}
            )
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
