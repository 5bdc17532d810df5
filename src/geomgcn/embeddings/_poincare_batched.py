"""The steps of the Poincaré embedding for many pairs at once, in plain tensor operations.

The objective and the gradient are those of :mod:`geomgcn.embeddings._poincare_kernels`. What differs: all
pairs of a batch see the positions before the batch, and their steps are added up.
"""

import numpy as np
import torch
from torch import Tensor

from geomgcn._types import EdgeIndex
from geomgcn.embeddings._poincare_kernels import RIM

BATCH = 2**18
"""Pairs in a batch, at most; each takes about a kilobyte."""

BATCHES = 64
"""In an epoch, at least, so that a batch of a small graph does not hold a node's steps many times over."""

DRAWS = 3
"""Rounds in which negatives that turn out to be neighbors are drawn again; the rest is left out."""

LONGEST_STEP = 1.0
"""Hyperbolic length of a node's step in a batch, at most: a hub's steps add up to more than it can use."""


class BatchedSteps:
    """All pairs in a random order, a batch at a time, on the device of the graph."""

    def __init__(self, pos: np.ndarray, canonical: EdgeIndex, negatives: int, seed: int) -> None:
        self.pos = torch.from_numpy(pos).to(canonical.device)
        self.source, self.target = canonical
        self.key = self.source * len(pos) + self.target  # sorted, since the graph is canonical
        self.negatives, self.seed = negatives, seed
        num_pairs = canonical.size(1)
        self.size = max(1, min(BATCH, num_pairs // BATCHES))
        self.num_pieces = max(1, -(-num_pairs // self.size))
        self.epoch = -1
        self.order = torch.empty(0, dtype=torch.long)

    def take(self, epoch: int, piece: int, rate: float) -> None:
        """Take the steps of one batch of an epoch."""
        if epoch != self.epoch:
            generator = self._generator(epoch, 0)
            self.order = torch.randperm(len(self.source), generator=generator, device=self.pos.device)
            self.epoch = epoch
        batch = self.order[piece * self.size : (piece + 1) * self.size]
        if not len(batch):
            return
        u, v = self.source[batch], self.target[batch]
        w, linked = self._strangers(u, self._generator(epoch, 1 + piece))
        others = torch.cat([v.unsqueeze(1), w], dim=1)
        left_out = torch.cat([torch.zeros_like(linked[:, :1]), linked], dim=1)
        ours, theirs = riemannian_gradients(self.pos[u], self.pos[others], left_out)
        step = torch.zeros_like(self.pos)
        step.index_add_(0, u, ours)
        step.index_add_(0, others.view(-1), theirs.view(-1, self.pos.size(1)))
        self.pos = moved(self.pos, -rate * step)

    def positions(self) -> np.ndarray:
        """Return the positions by now."""
        return self.pos.cpu().numpy()

    def _generator(self, *key: int) -> torch.Generator:
        state = np.random.SeedSequence([self.seed, *key]).generate_state(1, np.uint64)[0]
        return torch.Generator(self.pos.device).manual_seed(int(state >> np.uint64(1)))

    def _strangers(self, u: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return random nodes for each of ``u``, and which of them are neighbors all the same."""
        shape, device = (len(u), self.negatives), u.device
        w = torch.empty(shape, dtype=torch.long, device=device)
        linked = torch.ones(shape, dtype=torch.bool, device=device)
        for _ in range(DRAWS):
            drawn = torch.randint(len(self.pos), shape, generator=generator, device=device)
            w = torch.where(linked, drawn, w)
            key = u.unsqueeze(1) * len(self.pos) + w
            place = torch.searchsorted(self.key, key).clamp_(max=len(self.key) - 1)
            linked = (self.key[place] == key) | (w == u.unsqueeze(1))
        return w, linked


def riemannian_gradients(own: Tensor, others: Tensor, left_out: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Riemannian gradients of the loss of each pair, at its node and at the others.

    Args:
        own: Position of the node u of each pair, ``[num_pairs, dim]``.
        others: Positions of its neighbor v, and of the negatives, ``[num_pairs, 1 + negatives, dim]``.
        left_out: Which of the others do not count, ``[num_pairs, 1 + negatives]``.
    """
    own = own.unsqueeze(1)
    apart = (own - others).square().sum(-1)
    room_u = 1 - own.square().sum(-1)
    room = 1 - others.square().sum(-1)
    excess = 2 * apart / (room_u * room)  # cosh(d) - 1
    slope = (excess * (excess + 2)).sqrt()
    nearness = (1 / (1 + excess + slope)).masked_fill(left_out, 0.0)  # exp(-d)
    pull = -nearness / nearness.sum(1, keepdim=True)
    pull[:, 0] += 1
    pull = torch.where(slope > 0, pull / slope, 0.0)  # at the same place no direction is better
    away = own - others
    ours = (pull / room).unsqueeze(-1) * (room_u.unsqueeze(-1) * away + apart.unsqueeze(-1) * own)
    theirs = (pull / room_u).unsqueeze(-1) * (apart.unsqueeze(-1) * others - room.unsqueeze(-1) * away)
    return ours.sum(1), theirs


def moved(pos: Tensor, step: Tensor) -> Tensor:
    """Return positions after steps, none too long and all inside the ball."""
    length = 2 * step.norm(dim=1) / (1 - pos.square().sum(1))
    pos = pos + step * (LONGEST_STEP / length.clamp(min=LONGEST_STEP)).unsqueeze(1)
    return pos * ((1 - RIM) / pos.norm(dim=1).clamp(min=1 - RIM)).unsqueeze(1)
