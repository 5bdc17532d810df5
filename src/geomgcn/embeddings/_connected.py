"""Positions of one connected graph: exact, from landmarks, or landmarks made better."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from geomgcn._progress import Progress
from geomgcn.embeddings._device_hops import DeviceHops
from geomgcn.embeddings._kernels import COLUMNS, SOURCES_PER_SWEEP, near_together
from geomgcn.embeddings._landmarks import landmark_axes
from geomgcn.embeddings._lengths import Lengths
from geomgcn.embeddings._memory import room_for_distances
from geomgcn.embeddings._products import Hops, Paths, SquaredDistances
from geomgcn.embeddings._scaling import (
    NEGLIGIBLE,
    TIE,
    Krylov,
    Product,
    improved_axes,
    leading_axes,
    oriented,
)
from geomgcn.embeddings._twins import Twins, find_twins

CPU = torch.device("cpu")

WIDE_ABOVE, WIDE = 50_000, 16
"""Above so many nodes, more vectors are multiplied together: distances may have to be computed again for
each product, and that takes longer than the product."""

USUAL_PRODUCTS = 16
"""How many it takes in most graphs; only what is said of the progress depends on it."""

KEEP_EVERY = 1.0
"""Seconds between two states of a search that are kept."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A connected graph as compressed rows, and the length of each entry where these are not all 1.

    Attributes:
        device: Where landmarks are searched from; everything else is done on the CPU.
    """

    indptr: np.ndarray
    indices: np.ndarray
    lengths: np.ndarray | None = None
    device: torch.device = CPU

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.indptr) - 1

    def paths(self) -> Paths:
        """Return its shortest paths."""
        if self.lengths is None:
            return Hops(self.indptr, self.indices)
        return Lengths(self.indptr, self.indices, self.lengths)

    def products(self) -> SquaredDistances:
        """Return its squared distances, as something to multiply with."""
        if self.num_nodes <= SOURCES_PER_SWEEP:
            return SquaredDistances(self.paths(), room_for_distances())
        indptr, indices, weights, name = near_together(self.indptr, self.indices, self.lengths)
        near = Graph(indptr, indices, None if self.lengths is None else weights)
        return SquaredDistances(near.paths(), room_for_distances(), name)


@dataclass
class Watch:
    """Who is told of the progress, and what is kept of a run that may be stopped.

    Args:
        finished: Positions and extents of components that are done, the large ones.
    """

    progress: Progress
    finished: list[tuple[np.ndarray, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        kept = self.progress.kept() or {}
        self._search = {name[1:]: array for name, array in kept.items() if name.startswith("_")}
        ends = np.cumsum(kept["sizes"]) if "sizes" in kept else np.zeros(0, np.int64)
        parts = np.split(kept["done"], ends)[:-1] if len(ends) else []
        self._known = list(zip(parts, kept["reaches"].tolist(), strict=True)) if len(ends) else []
        self._count, self._kept_at = 0, time.monotonic()

    def known(self) -> tuple[np.ndarray, float] | None:
        """Return what an earlier run found for the next component, where it came so far."""
        number = len(self.finished)
        return self._known[number] if number < len(self._known) else None

    def search(self) -> dict[str, np.ndarray] | None:
        """Return the state of an earlier run's search for the axes of the next component, once."""
        if len(self.finished) != len(self._known) or not self._search:
            return None
        kept, self._search = self._search, {}
        return kept

    def on_block(self, done: int, total: int) -> None:
        """Say how much of the distances is done, or of a product that computes them again."""
        stage = "distances" if self._count == 0 else f"distances, product {self._count + 1}"
        self.progress.step(stage, done, total)

    def on_product(self, search: Krylov) -> None:
        """Say how many products are done, and keep the state if it is time."""
        self._count = search.products
        self.progress.step("axes", search.products, max(USUAL_PRODUCTS, search.products + 1))
        if time.monotonic() - self._kept_at < KEEP_EVERY:
            return
        state = {f"_{name}": array for name, array in search.state().items()}
        if self.finished:
            state["done"] = np.concatenate([pos for pos, _ in self.finished])
            state["sizes"] = np.array([len(pos) for pos, _ in self.finished])
            state["reaches"] = np.array([reach for _, reach in self.finished])
        self.progress.keep(**state)
        self._kept_at = time.monotonic()

    def done(self, pos: np.ndarray, reach: float) -> None:
        """Take the result of a component."""
        self.finished.append((pos, reach))
        self._count = 0


def exact(graph: Graph, dim: int, watch: Watch) -> tuple[np.ndarray, float]:
    """Return centered positions, not yet on a grid, and the diameter."""
    distances = graph.products()
    unit, size = distances.paths.unit, graph.num_nodes
    unlinked, linked = find_twins(graph.indptr, graph.indices, graph.lengths)

    def times(rows: np.ndarray) -> np.ndarray:
        return distances.times(rows, None if distances.is_kept else watch.on_block)

    def merged(rows: np.ndarray) -> np.ndarray:
        # As if twins were at distance 0: what these squares add is taken off again.
        return times(rows) - (unlinked.apart / unit) ** 2 * (unlinked.sums(rows) - rows)

    width = WIDE if size > WIDE_ABOVE else COLUMNS
    options: dict[str, Any] = {"width": width, "negligible": distances.paths.negligible}
    values, axes = leading_axes(times, size, dim, **options, kept=watch.search(), on_product=watch.on_product)
    apart = _stand_apart(unlinked, _least(values, dim) * unit**2)
    if apart.any() and _cuts_twin_axes(times, size, dim, (unlinked.apart / unit) ** 2 / 2):
        values, axes = leading_axes(merged, size, dim, **options)
        apart[:] = False
    rows = _rows(axes * np.sqrt(values)[:, None], dim) * unit
    rows = unlinked.joined(rows, ~apart)
    rows = linked.joined(rows, ~_stand_apart(linked, _least(values, dim) * unit**2))
    return rows.T, distances.diameter * unit


def from_landmarks(
    graph: Graph, dim: int, num_landmarks: int, refinements: int, seed: list[int], watch: Watch
) -> tuple[np.ndarray, float]:
    """Return centered positions, not yet on a grid, and a length between once and twice the diameter.

    Args:
        refinements: Products with all distances.
    """
    paths = graph.paths()
    if graph.device != CPU and graph.lengths is None:
        paths = DeviceHops(graph.indptr, graph.indices, graph.device)
    axes, reach = landmark_axes(paths, dim, num_landmarks, seed, watch.progress.step)
    extent = np.einsum("in,in->i", axes, axes)
    axes = axes[extent > NEGLIGIBLE * extent.max(initial=0.0)]
    unit = paths.unit
    del paths
    if refinements and len(axes):
        distances = graph.products()
        axes = axes * (unit / distances.paths.unit)
        unit = distances.paths.unit
        values, axes = improved_axes(
            lambda rows: distances.times(rows, None if distances.is_kept else watch.on_block),
            axes,
            dim,
            refinements,
            negligible=distances.paths.negligible,
            kept=watch.search(),
            on_product=watch.on_product,
        )
        axes = axes * np.sqrt(values)[:, None]
        reach = distances.diameter
    rows = _rows(axes[:dim], dim) * unit
    for twins in find_twins(graph.indptr, graph.indices, graph.lengths):
        rows = twins.joined(rows, np.ones(graph.num_nodes, bool))
    return rows.T, reach * unit


def _least(values: np.ndarray, dim: int) -> float:
    """Return the eigenvalue of the last axis."""
    return float(values[dim - 1]) if len(values) == dim else 0.0


def _stand_apart(twins: Twins, least: float) -> np.ndarray:
    """Say of which twins the axes tell them apart: their eigenvalue is half of their squared distance."""
    return (twins.apart > 0) & (least <= twins.apart**2 / 2 * (1 + TIE))


def _cuts_twin_axes(times: Product, num_nodes: int, dim: int, halves: np.ndarray) -> bool:
    """Say whether the axes that tell twins apart are more than ``dim`` has room for.

    Args:
        halves: Of each node that has twins, the eigenvalue of their axes.
    """
    values, _ = leading_axes(times, num_nodes, dim + 1)
    if len(values) <= dim:
        return False
    found = np.unique(halves[halves > 0])[:, None]
    tied = np.abs(values[dim - 1 :] - found) <= TIE * np.maximum(values.max(), found)
    return bool(tied.all(axis=1).any())


def _rows(axes: np.ndarray, dim: int) -> np.ndarray:
    """Return ``dim`` rows, each with its longer tail up; those that are missing are 0."""
    out = np.zeros((dim, axes.shape[1]))
    for k, axis in enumerate(axes):
        out[k] = oriented(axis)
    return out
