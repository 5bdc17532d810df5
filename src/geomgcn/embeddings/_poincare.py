"""Poincaré: positions in the hyperbolic ball, where hierarchies have room."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import torch

from geomgcn import graphs
from geomgcn._types import EdgeIndex, Position
from geomgcn.embeddings._base import Embedding
from geomgcn.embeddings._kernels import over_pieces
from geomgcn.embeddings._poincare_kernels import descend, shuffle

Mode = Literal["deterministic", "hogwild"]

START = 1e-3
"""Nodes start at random within this box around the origin."""

BURN_IN_RATE, BURN_IN_EPOCHS = 0.03, 0.25
"""Share of the learning rate, and of the epochs, in which the angles are found (Section 3.2 of the original).
On Cora and Chameleon 3 % gave better ranks than 10 %, 1 % or 0.3 %, at equal precision."""

MOST_ENTRIES = 2**31 - 1
PIECES = 64
"""Into which an epoch is cut for the threads of Hogwild."""


@dataclass(frozen=True)
class Poincare(Embedding):
    r"""Positions in the open unit ball, linked nodes near each other (Nickel and Kiela 2017; Section 3.1).

    .. math::
        L = - \sum_{(u, v)} \log \frac{e^{-d(u, v)}}{e^{-d(u, v)} + \sum_{w} e^{-d(u, w)}}, \qquad
        z \leftarrow \operatorname{proj} \Bigl( z - \eta \frac{(1 - |z|^2)^2}{4} \nabla L \Bigr)

    over all ordered pairs of linked nodes; d is the hyperbolic distance, and w are random nodes that are
    no neighbors of u. Hubs come to lie near the origin and leaves near the rim, so the distance to the
    origin tells the place in a hierarchy. What the formula leaves open:

    * **Learning rate.** 3 % of it in the first quarter of the epochs, the burn-in; then all of it, falling in
      a straight line to zero.
    * **Isolated nodes and components.** Whoever is linked to nobody is pushed away by all and ends near the
      rim; components drift apart the same way. Without any edge the nodes stay where they start.
    * **Negatives.** A node that is linked to nearly all others may find fewer of them.
    * **Threads.** ``"deterministic"`` takes one step after another on one thread: the same seed gives the
      same bytes. ``"hogwild"`` lets all threads step at once, without locks; no two runs are the same.

    Takes time linear in pairs x epochs x negatives, and memory linear in nodes and edges.

    Args:
        dim: Axes of the ball.
        epochs: How often each pair is looked at.
        negatives: Random nodes w for each pair.
        mode: ``"deterministic"`` or ``"hogwild"``.

    Example:
        >>> star = torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]])
        >>> radius = Poincare(epochs=50).embed(star, num_nodes=5).norm(dim=1)
        >>> int(radius.argmin())
        0
    """

    dim: int = 2
    epochs: int = 100
    negatives: int = 10
    learning_rate: float = 0.14
    seed: int = 0
    mode: Mode = "deterministic"

    geometry: ClassVar[str] = "poincare"
    version: ClassVar[int | None] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("epochs", 1), ("negatives", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(
                    f"Poincare needs {name} to be a whole number from {least}, got {value!r}. "
                    f"The default is {name}={getattr(Poincare, name)!r}."
                )
        if not 0 < self.learning_rate <= 10:
            raise ValueError(
                f"Poincare needs a learning_rate above 0 and at most 10, got {self.learning_rate!r}. "
                f"The default is {Poincare.learning_rate!r}."
            )
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode is 'deterministic' or 'hogwild', got {self.mode!r}.")

    def embed(self, edge_index: EdgeIndex, num_nodes: int) -> Position:
        """Return the positions of all nodes; the canonical graph of ``edge_index`` counts."""
        canonical, _ = graphs.canonical_edges(edge_index.cpu(), num_nodes)
        if max(canonical.size(1), num_nodes) > MOST_ENTRIES:
            raise ValueError(
                f"Poincare needs at most {MOST_ENTRIES} nodes and ordered pairs, got {num_nodes} nodes and "
                f"{canonical.size(1)} pairs. Embed a part of the graph."
            )
        random = np.random.Generator(np.random.PCG64(self.seed))
        pos = random.random((num_nodes, self.dim)) * (2 * START) - START
        source, target = canonical.numpy().astype(np.int32)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=num_nodes))])
        order = np.arange(len(source), dtype=np.int32)
        # States of the generators: one for the order, one for each piece.
        states = random.integers(2**64, size=(1 + PIECES, 1), dtype=np.uint64)
        for epoch in range(self.epochs):
            shuffle(order, states[0])
            rate = self._rate(epoch)
            if self.mode == "deterministic":
                descend(pos, indptr, target, source, order, rate, self.negatives, states[1])
                continue
            pieces = np.array_split(order, PIECES)

            def work(i: int, rate: float = rate, pieces: list[np.ndarray] = pieces) -> None:
                descend(pos, indptr, target, source, pieces[i], rate, self.negatives, states[1 + i])

            over_pieces(work, range(PIECES))
        return torch.from_numpy(pos).to(edge_index.device)

    def _rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        burn_in = int(BURN_IN_EPOCHS * self.epochs)
        if epoch < burn_in:
            return BURN_IN_RATE * self.learning_rate
        return self.learning_rate * (self.epochs - epoch) / (self.epochs - burn_in)
