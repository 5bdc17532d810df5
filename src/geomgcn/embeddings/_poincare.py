"""Poincaré: positions in the hyperbolic ball, where hierarchies have room."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, get_args

import numpy as np
import torch

from geomgcn import graphs
from geomgcn._progress import Progress
from geomgcn._types import EdgeIndex, Position
from geomgcn.embeddings._base import Embedding
from geomgcn.embeddings._kernels import over_pieces
from geomgcn.embeddings._poincare_batched import BatchedSteps
from geomgcn.embeddings._poincare_kernels import descend, shuffle
from geomgcn.embeddings._settings import check_whole

Mode = Literal["deterministic", "hogwild", "batched"]

START = 1e-3
"""Nodes start at random within this box around the origin."""

BURN_IN_RATE, BURN_IN_EPOCHS = 0.03, 0.25
"""Share of the learning rate, and of the epochs, in which the angles are found (Section 3.2 of the original).
On Cora and Chameleon 3 % gave better ranks than 10 %, 1 % or 0.3 %, at equal precision."""

MOST_ENTRIES = 2**31 - 1
PIECE = 2**19
"""Pairs between two looks at the keyboard: about a second."""

SHARES = 16
"""Into which a piece is cut for the threads of Hogwild."""


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
    * **Mode.** ``"deterministic"`` takes one step after another on one thread: the same seed gives the
      same bytes. ``"hogwild"`` lets all threads step at once, without locks; no two runs are the same.
      ``"batched"`` takes the steps of many pairs together, on the device that ``edge_index`` is on: the way
      for a GPU, where sums come in any order and two runs differ in their last digits.

    Takes time linear in pairs x epochs x negatives, and memory linear in nodes and edges. A run that is
    stopped goes on at the pair where it was.

    Args:
        dim: Axes of the ball.
        epochs: How often each pair is looked at.
        negatives: Random nodes w for each pair.
        mode: ``"deterministic"``, ``"hogwild"`` or ``"batched"``.

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
    version: ClassVar[int | None] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, epochs=1, negatives=1, seed=0)
        rate = self.learning_rate
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 10:
            raise ValueError(
                f"Poincare needs a learning_rate above 0 and at most 10, got {self.learning_rate!r}. "
                f"The default is {Poincare.learning_rate!r}."
            )
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode is 'deterministic', 'hogwild' or 'batched', got {self.mode!r}.")

    def embed(self, edge_index: EdgeIndex, num_nodes: int, progress: Progress | None = None) -> Position:
        """Return the positions of all nodes; the canonical graph of ``edge_index`` counts."""
        canonical, _ = graphs.canonical_edges(edge_index, num_nodes)
        if max(canonical.size(1), num_nodes) > MOST_ENTRIES:
            raise ValueError(
                f"Poincare needs at most {MOST_ENTRIES} nodes and ordered pairs, got {num_nodes} nodes and "
                f"{canonical.size(1)} pairs. Embed a part of the graph."
            )
        progress = progress or Progress()
        kept = progress.kept() or {"pos": self._start(num_nodes), "done": np.array(0)}
        steps: Steps
        if self.mode == "batched":
            steps = BatchedSteps(kept["pos"], canonical, self.negatives, self.seed)
        else:
            steps = _CompiledSteps(kept["pos"], canonical, self)
        done, total = int(kept["done"]), self.epochs * steps.num_pieces
        while done < total:
            epoch, piece = divmod(done, steps.num_pieces)
            steps.take(epoch, piece, self._rate(epoch))
            done += 1
            progress.keep(pos=steps.positions(), done=np.array(done))
            progress.step("epochs" if steps.num_pieces == 1 else "pieces of epochs", done, total)
        return torch.from_numpy(steps.positions()).to(edge_index.device)

    def _start(self, num_nodes: int) -> np.ndarray:
        random = np.random.Generator(np.random.PCG64(self.seed))
        return random.random((num_nodes, self.dim)) * (2 * START) - START

    def _rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        burn_in = int(BURN_IN_EPOCHS * self.epochs)
        if epoch < burn_in:
            return BURN_IN_RATE * self.learning_rate
        return self.learning_rate * (self.epochs - epoch) / (self.epochs - burn_in)


class Steps(Protocol):
    """All pairs in a random order, new in each epoch, a piece at a time.

    What a piece does depends on the positions, the seed, the epoch and the piece, and on nothing before:
    so a run can go on anywhere.
    """

    num_pieces: int

    def take(self, epoch: int, piece: int, rate: float) -> None:
        """Take the steps of one piece of an epoch."""
        ...

    def positions(self) -> np.ndarray:
        """Return the positions by now."""
        ...


class _CompiledSteps:
    """One pair after another, or one a thread."""

    def __init__(self, pos: np.ndarray, canonical: EdgeIndex, settings: Poincare) -> None:
        self.pos, self.settings = pos, settings
        self.source, self.target = canonical.cpu().numpy().astype(np.int32)
        self.indptr = np.concatenate([[0], np.cumsum(np.bincount(self.source, minlength=len(pos)))])
        self.num_pieces = max(1, -(-len(self.source) // PIECE))
        self.order = np.arange(len(self.source), dtype=np.int32)
        self.epoch = -1

    def take(self, epoch: int, piece: int, rate: float) -> None:
        # States of the generators: one for the order, then some for each piece.
        seeds = np.random.SeedSequence([self.settings.seed, epoch])
        states = seeds.generate_state(1 + SHARES * self.num_pieces, np.uint64).reshape(-1, 1)
        if epoch != self.epoch:
            self.order[:] = np.arange(len(self.order), dtype=np.int32)
            shuffle(self.order, states[0])
            self.epoch = epoch
        own = states[1 + SHARES * piece :]
        pairs = self.order[piece * PIECE : (piece + 1) * PIECE]
        if self.settings.mode == "deterministic":
            self._descend(pairs, rate, own[0])
            return
        shares = np.array_split(pairs, SHARES)
        over_pieces(lambda i: self._descend(shares[i], rate, own[i]), range(SHARES))

    def _descend(self, pairs: np.ndarray, rate: float, state: np.ndarray) -> None:
        negatives = self.settings.negatives
        descend(self.pos, self.indptr, self.target, self.source, pairs, rate, negatives, state)

    def positions(self) -> np.ndarray:
        return self.pos
