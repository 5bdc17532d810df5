"""Exact Isomap of many small components, compiled: a graph may have a hundred thousand of them.

The same rules as in :mod:`geomgcn.embeddings._connected`, on whole matrices instead of products.
"""

from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled
from geomgcn.embeddings._components import Components
from geomgcn.embeddings._eigen import decompose
from geomgcn.embeddings._kernels import COLUMNS, over_pieces
from geomgcn.embeddings._scaling import NEGLIGIBLE, SYMMETRIC, TIE, random_start, tied_end

SMALL = 32
"""Nodes of the largest component that goes this way."""

PARTS_PER_PIECE = 1024
"""Components done at a time, between two looks at whether to stop; half a second at most."""


def small_parts(
    parts: Components, indptr: np.ndarray, indices: np.ndarray, lengths: np.ndarray | None, dim: int
) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of the first small component, and positions and diameters from there on.

    Example:
        >>> ends = np.array([0, 1, 2]), np.array([1, 0])
        >>> first, pos, diameter = small_parts(Components.of(*ends), *ends, None, dim=1)
        >>> pos.round(9).tolist(), diameter.tolist()
        ([[0.5], [-0.5]], [1.0])
    """
    sizes = parts.sizes  # descending
    first, last = int((sizes > SMALL).sum()), int((sizes > 1).sum())
    begin = int(parts.starts[first])
    pos, diameter = np.zeros((len(parts.nodes) - begin, dim)), np.zeros(len(parts) - first)
    width = -(-dim // COLUMNS) * COLUMNS
    anchors = np.zeros((SMALL + 1, width, SMALL))
    for size in set(sizes[first:last].tolist()):
        anchors[size, :, :size] = random_start(width, size)
    lengths = np.ones(0) if lengths is None else lengths

    def work(start: int) -> None:
        stop = min(start + PARTS_PER_PIECE, last)
        _place_parts(
            parts.nodes, parts.starts, parts.place, indptr, indices, lengths, start, stop, anchors,
            pos, begin, diameter, first,
        )  # fmt: skip

    over_pieces(work, range(first, last, PARTS_PER_PIECE))
    return first, pos, diameter


@no_type_check
@compiled()
def _place_parts(
    nodes, starts, place, indptr, indices, lengths, start, stop, anchors, pos, begin, diameter, first
):
    """Write positions and diameters of the components ``start`` to ``stop``."""
    for number in range(start, stop):
        own = nodes[starts[number] : starts[number + 1]]
        size, low = len(own), starts[number] - begin
        edges = np.full((size, size), np.inf)
        for i in range(size):
            for e in range(indptr[own[i]], indptr[own[i] + 1]):
                edges[i, place[indices[e]]] = lengths[e] if len(lengths) else 1.0
        distances = _all_paths(edges)
        diameter[number - first] = distances.max()
        _place(edges, distances, anchors[size, :, :size], pos[low : low + size])


@no_type_check
@compiled()
def _all_paths(edges):
    """Return the lengths of all shortest paths (Floyd 1962); equal both ways, as sums of two are."""
    size = len(edges)
    out = edges.copy()
    for i in range(size):
        out[i, i] = 0.0
    for k in range(size):
        for i in range(size):
            for j in range(size):
                out[i, j] = min(out[i, j], out[i, k] + out[k, j])
    return out


@no_type_check
@compiled()
def _place(edges, distances, anchors, pos):
    """Write the positions of one component."""
    size, dim = pos.shape
    unlinked, linked = _twin_labels(edges)
    squares = distances * distances
    values, rows = _leading(squares, dim, anchors)
    least = values[dim - 1] if len(values) == dim else 0.0
    merge = False
    if len(values) == dim:
        more, _ = _leading(squares, dim + 1, anchors)
        for i in range(size):
            half = squares[i, unlinked[i]] / 2
            if unlinked[i] < i and least <= half * (1 + TIE) and len(more) > dim:
                slack = TIE * max(more[0], half)
                merge |= np.abs(more[dim - 1] - half) <= slack and np.abs(more[dim] - half) <= slack
    if merge:
        merged = squares.copy()
        for i in range(size):
            for j in range(size):
                if unlinked[i] == unlinked[j]:
                    merged[i, j] = 0.0
        values, rows = _leading(merged, dim, anchors)
        least = values[dim - 1] if len(values) == dim else 0.0
    for k in range(len(values)):
        _orient(rows[k])
        for i in range(size):
            pos[i, k] = rows[k, i] * np.sqrt(values[k])
    _join(pos, unlinked, squares, -1.0 if merge else least)
    _join(pos, linked, squares, least)


@no_type_check
@compiled()
def _twin_labels(edges):
    """Return the first node that each node has the same neighbors with, unlinked and linked."""
    size = len(edges)
    unlinked, linked = np.arange(size), np.arange(size)
    for i in range(size):
        for j in range(i - 1, -1, -1):
            same = True
            for k in range(size):
                same &= k in (i, j) or edges[i, k] == edges[j, k]
            if same and edges[i, j] == np.inf:
                unlinked[i] = j
            elif same:
                linked[i] = j
    return unlinked, linked


@no_type_check
@compiled()
def _leading(squares, dim, anchors):
    """Return the leading eigenvalues of the centered matrix and their vectors as rows; ties by anchors."""
    size = len(squares)
    matrix = np.empty((size, size))
    total = 0.0
    mean = np.zeros(size)
    for i in range(size):
        for j in range(size):
            mean[i] += squares[i, j] / size
        total += mean[i] / size
    for i in range(size):
        for j in range(size):
            matrix[i, j] = -0.5 * (squares[i, j] - (mean[i] + mean[j]) + total)
    found, vectors = np.zeros(size), np.eye(size)
    decompose(matrix, found, vectors)
    order = np.argsort(-found, kind="mergesort")
    values = found[order]
    scale = max(np.abs(values[0]), np.abs(values[-1]))
    count = 0
    while count < min(dim, size) and values[count] > NEGLIGIBLE * scale:
        count += 1
    rows = np.zeros((count, size))
    done = 0
    while done < count:
        end = tied_end(values, done, scale)
        if end == done + 1:
            rows[done] = vectors[order[done]]
            done = end
            continue
        begin = done
        for anchor in anchors:  # their shadows on the eigenspace, orthogonalized in order
            if done == min(end, count):
                break
            for v in order[begin:end]:
                along = 0.0
                for i in range(size):
                    along += anchor[i] * vectors[v, i]
                for i in range(size):
                    rows[done, i] += along * vectors[v, i]
            done += _normalize_last(rows, begin, done)
        if done < min(end, count):  # fewer anchors than axes never come here: there are `dim` at least
            count = done
    return values[:count].copy(), rows[:count]


@no_type_check
@compiled()
def _normalize_last(rows, begin, last):
    """Make the last row orthogonal to those before and of length 1; return 0 if it depends on them."""
    size = rows.shape[1]
    before = 0.0
    for i in range(size):
        before += rows[last, i] ** 2
    for _ in range(2):
        for k in range(begin, last):
            along = 0.0
            for i in range(size):
                along += rows[last, i] * rows[k, i]
            for i in range(size):
                rows[last, i] -= along * rows[k, i]
    after = 0.0
    for i in range(size):
        after += rows[last, i] ** 2
    usable = after > 1e-12 * before
    for i in range(size):
        rows[last, i] = rows[last, i] / np.sqrt(after) if usable else 0.0
    return 1 if usable else 0


@no_type_check
@compiled()
def _orient(row):
    """Turn the longer tail of an axis up."""
    cubes = total = largest = 0.0
    for x in row:
        cubes += x**3
        total += np.abs(x) ** 3
        largest = max(largest, np.abs(x))
    side = cubes / total if total > 0 else 0.0
    if np.abs(side) <= SYMMETRIC:
        for x in row:
            if np.abs(x) > SYMMETRIC * largest:
                side = x
                break
    if side < 0:
        for i in range(len(row)):
            row[i] = -row[i]


@no_type_check
@compiled()
def _join(pos, label, squares, least):
    """Give twins the mean of their class unless the axes tell them apart; always where ``least`` is -1."""
    size, dim = pos.shape
    for first in range(size):
        count = 0
        for i in range(first, size):
            if label[i] == first:
                count += 1
                twin = i
        if count < 2 or (least >= 0 and least <= squares[first, twin] / 2 * (1 + TIE)):
            continue
        for k in range(dim):
            mean = 0.0
            for i in range(first, size):
                if label[i] == first:
                    mean += pos[i, k] / count
            for i in range(first, size):
                if label[i] == first:
                    pos[i, k] = mean
