"""Landmark scaling: axes from the distances to a few nodes (de Silva and Tenenbaum 2003)."""

import threading

import numpy as np

from geomgcn._progress import OnStep
from geomgcn.embeddings._device_hops import DeviceHops
from geomgcn.embeddings._eigen import symmetric_eigen
from geomgcn.embeddings._kernels import SOURCES_PER_SWEEP, each_piece, over_pieces
from geomgcn.embeddings._products import Paths, sums_over_sources
from geomgcn.embeddings._scaling import improved_axes, random_start

LANDMARKS_PER_AXIS, MOST_AXES = 4, 16
"""Axes that the landmarks span; all but ``dim`` of them go when they are turned to the longest extents of all
nodes. With no more than ``dim`` from the start, axes of the landmarks would stand for those of the graph: on
Squirrel, 500 landmarks came to a Procrustes correlation of .977 with 2 axes, and of .995 with 16. Nor do
fewer than four landmarks determine an axis: the last eigenvalues of dim + 1 landmarks are mostly noise, and
all other nodes are placed by dividing by their roots. On random graphs of 300 nodes and 1500 edges, axes
came out up to 9 times too wide (17 landmarks, 16 axes), and at most 1.5 times with four landmarks an axis."""

PRODUCTS = 16
"""With the distances between landmarks; the last of their axes need not be exact."""

NODES_PER_PIECE = 1 << 16
"""Placed at a time, between two looks at whether to stop."""


def landmark_axes(
    paths: Paths, dim: int, num_landmarks: int, seed: list[int], tell: OnStep | None = None
) -> tuple[np.ndarray, int]:
    r"""Return positions along some axes, the longest first, and a bound of the diameter.

    Landmarks get the positions :math:`L_k = \sqrt{\lambda_k} u_k` of classical scaling among themselves, and
    every node, from its squared distances :math:`\delta` to them,

    .. math:: z_k = -\frac{1}{2 \sqrt{\lambda_k}} u_k^\top \delta + \text{const},

    which is exact for distances between points of a space with so many axes. Then all positions are turned
    to their principal axes.

    Args:
        dim: The axes that matter; more may come back, or fewer where fewer have an extent.
        seed: Of the choice of landmarks.
        tell: Is told of the stages and of what is done of them.

    Returns:
        Centered positions as rows, and, in units of ``paths``, a length between once and twice the diameter.
    """
    chosen = np.random.default_rng(seed).choice(paths.num_nodes, num_landmarks, replace=False)
    chosen.sort()
    starts = range(0, num_landmarks, SOURCES_PER_SWEEP)
    stopped = threading.Event()

    def search(start: int) -> tuple[np.ndarray, int]:
        return paths.block(chosen[start : start + SOURCES_PER_SWEEP], 0, stopped)

    blocks: list[np.ndarray] = []
    for block, _ in each_piece(search, starts, stopped):
        blocks.append(block)
        if tell is not None:
            tell("distances", len(blocks), len(starts))
    between = np.concatenate([block[chosen] for block in blocks], axis=1).astype(np.float64) ** 2
    least_reach = min(int(block.max(axis=0).min()) for block in blocks)
    values, axes = improved_axes(
        lambda rows: np.einsum("ij,cj->ci", between, rows),
        random_start(MOST_AXES, num_landmarks),
        max(dim, min(MOST_AXES, num_landmarks // LANDMARKS_PER_AXIS)),
        PRODUCTS,
        negligible=paths.negligible,
    )
    if len(values) == 0:
        return np.zeros((0, paths.num_nodes)), 2 * least_reach
    weights = -0.5 * axes / np.sqrt(values)[:, None]
    pos = paths.place(blocks, weights) if isinstance(paths, DeviceHops) else _placed(blocks, weights, tell)
    return _principal(pos), 2 * least_reach


def _placed(blocks: list[np.ndarray], weights: np.ndarray, tell: OnStep | None) -> np.ndarray:
    """Return the weighted sums of the squared distances of all nodes from the landmarks."""
    num_nodes = len(blocks[0])
    pos = np.empty((len(weights), num_nodes))

    def place(start: int) -> None:
        nodes = slice(start, start + NODES_PER_PIECE)
        total = np.zeros(1)
        for number, block in enumerate(blocks):
            first = number * SOURCES_PER_SWEEP
            total = total + sums_over_sources(block[nodes], weights[:, first : first + block.shape[1]])
        pos[:, nodes] = total

    pieces = range(0, num_nodes, NODES_PER_PIECE)
    over_pieces(
        place, pieces, None if tell is None else lambda done: tell("triangulation", done, len(pieces))
    )
    return pos


def _principal(pos: np.ndarray) -> np.ndarray:
    """Return centered positions, turned so that each axis is the longest that is left."""
    pos -= pos.mean(axis=1, keepdims=True)
    _, turn = symmetric_eigen(np.einsum("in,jn->ij", pos, pos))
    out = np.empty_like(pos)
    for start in range(0, pos.shape[1], NODES_PER_PIECE):
        nodes = slice(start, start + NODES_PER_PIECE)
        out[:, nodes] = np.einsum("ij,in->jn", turn, pos[:, nodes])
    return out
