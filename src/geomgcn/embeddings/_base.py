"""What every embedding promises, how it is found by name, and how its result is kept."""

import dataclasses
import inspect
import os
import sys
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from geomgcn import _store, graphs
from geomgcn._names import is_reference, lookup, referenced
from geomgcn._progress import OnStep, Progress
from geomgcn._types import EdgeIndex, Position


@dataclass(frozen=True)
class Embedding(BaseTransform):
    """A map from the nodes of a graph to positions in a latent space (Section 3.1, the map f).

    A subclass is a frozen dataclass of settings with one method, :meth:`embed`. As a PyG transform it
    writes ``data.pos`` and ``data.geometry``. Subclasses anywhere are found by :func:`by_name`.

    Args:
        dim: Axes of the latent space.

    Example:
        >>> import torch
        >>> @dataclass(frozen=True)
        ... class ByDegree(Embedding):
        ...     dim: int = 1
        ...     def embed(self, edge_index, num_nodes):
        ...         return torch.bincount(edge_index[1], minlength=num_nodes).double().view(-1, 1)
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> by_name("bydegree")()(data).pos.view(-1).tolist()
        [1.0, 2.0, 1.0]
    """

    dim: int = 2

    geometry: ClassVar[str] = "euclidean"
    """The space that positions lie in: ``"euclidean"`` or ``"poincare"`` (the open unit ball)."""

    version: ClassVar[int | None] = None
    """Of the algorithm. :func:`embed_cached` keeps positions only of a class that states its own, which
    it then raises whenever the same settings give other positions than before."""

    equivariant: ClassVar[bool] = False
    """Whether renumbering the nodes of a graph without symmetries renumbers the positions, and no more."""

    def __post_init__(self) -> None:
        if isinstance(self.dim, bool) or not isinstance(self.dim, int):
            raise TypeError(
                f"{type(self).__name__} needs an integer dim, got dim={self.dim!r}. Pass dim=2, for example."
            )
        if self.dim < 1:
            raise ValueError(
                f"{type(self).__name__} needs at least one axis, got dim={self.dim}. Pass dim=2, for example."
            )

    @abstractmethod
    def embed(self, edge_index: EdgeIndex, num_nodes: int) -> Position:
        """Return finite float64 positions of all nodes, isolated ones too, without changing anything.

        Two more arguments are passed to a class whose ``embed`` names them, and to no other: ``edge_length``,
        the length of each pair or None where the graph has none, and ``progress``, a
        :class:`~geomgcn._progress.Progress` to report to and to keep the state of a long run in.

        Args:
            edge_index: The canonical graph, as :func:`geomgcn.graphs.canonical_edges` returns it.
        """

    def settings(self) -> dict[str, Any]:
        """Return all that the positions of a graph depend on, as JSON can hold it.

        Example:
            >>> from geomgcn.embeddings import Isomap
            >>> Isomap(dim=3).settings()
            {'embedding': 'isomap', 'version': 3, 'dim': 3, 'landmarks': None, 'refinements': 0, 'seed': 0}
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        kind = type(self)
        name = kind.__name__.lower() if kind.__module__.startswith("geomgcn.") else _reference_to(kind)
        # Attributes too, for a class whose settings are no fields because it has an __init__ of its own.
        return {"embedding": name, "version": self.version, **fields, **vars(self)}

    def forward(self, data: Data) -> Data:
        """Write ``pos`` and ``geometry`` to ``data``; lengths of edges are read from ``data.edge_length``."""
        graphs.check_data(data, type(self).__name__)
        num_nodes = data.num_nodes
        edge_index, edge_length = _canonical(self, data.edge_index, num_nodes, data.get("edge_length"))
        data.pos = _checked(self, edge_index, num_nodes, edge_length)
        data.geometry = self.geometry
        return data


def _reference_to(kind: type[Embedding]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _takes(embedding: Embedding, name: str) -> bool:
    """Return whether ``embedding.embed`` has an argument of that name."""
    return name in inspect.signature(type(embedding).embed).parameters


def _canonical(
    embedding: Embedding, edge_index: Tensor, num_nodes: int, edge_length: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return the canonical graph, and the lengths of its pairs where there are some and they count."""
    if edge_length is None or not _takes(embedding, "edge_length"):
        return graphs.canonical_edges(edge_index, num_nodes)[0], None
    return graphs.canonical_lengths(edge_index, edge_length, num_nodes)


def _checked(
    embedding: Embedding,
    edge_index: EdgeIndex,
    num_nodes: int,
    edge_length: Tensor | None = None,
    progress: Progress | None = None,
) -> Position:
    """Return ``embedding.embed(...)``, or say what a class of the user's own has to change."""
    offered = {"edge_length": edge_length, "progress": progress}
    known = {name: value for name, value in offered.items() if value is not None and _takes(embedding, name)}
    embed: Callable[..., Position] = embedding.embed
    pos = embed(edge_index, num_nodes, **known)
    owner = f"{type(embedding).__name__}.embed"
    if not isinstance(pos, torch.Tensor):
        raise TypeError(
            f"{owner} needs to return a tensor, got {type(pos).__name__}. Use torch.as_tensor(pos)."
        )
    if pos.dim() != 2 or pos.size(0) != num_nodes:
        raise ValueError(
            f"{owner} needs to return one row for each of {num_nodes} nodes, got shape {list(pos.shape)}. "
            f"Give isolated nodes a place too."
        )
    pos = pos.detach()
    try:
        graphs.check_positions(pos)
    except ValueError as error:
        raise ValueError(f"{owner} returned positions that cannot be used. {error}") from error
    return pos


def by_name(name: str) -> type[Embedding]:
    """Return the embedding class of that name, ours or a user's; case does not matter.

    A class of the user's own is found by its name once it is imported, and as ``module:Class`` before.

    Example:
        >>> by_name("isomap").__name__
        'Isomap'
        >>> by_name("isomapp")
        Traceback (most recent call last):
        ValueError: Unknown embedding 'isomapp'. Did you mean 'isomap'? Known: ...
    """
    return (
        referenced("embedding", name, Embedding) if is_reference(name) else lookup("embedding", name, known())
    )


def known() -> dict[str, type[Embedding]]:
    """Return all embedding classes that exist by now, by lower-case name.

    Example:
        >>> "isomap" in known()
        True
    """
    found: dict[str, type[Embedding]] = {}
    waiting = list(Embedding.__subclasses__())
    while waiting:
        kind = waiting.pop(0)
        waiting.extend(kind.__subclasses__())
        if not inspect.isabstract(kind):
            found[kind.__name__.lower()] = kind
    return found


_FAILURES = (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError)
"""What a computation raises because of its input or its own mistakes, and not because it is stopped."""


def _file_of(kind: type[Embedding]) -> dict[str, str]:
    """Return the file of a class of the user's own: two of them may have the same name."""
    if kind.__module__.startswith("geomgcn."):
        return {}
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return {} if path is None else {"file": os.path.abspath(path)}


def embed_cached(
    embedding: Embedding,
    edge_index: EdgeIndex,
    num_nodes: int,
    folder: str | os.PathLike[str] | None = None,
    *,
    edge_length: Tensor | None = None,
    on_step: OnStep | None = None,
) -> Position:
    """Return ``embedding.embed(...)``, from the cache where it holds these positions already.

    The key is ``embedding.settings()``, the canonical graph, its number of nodes and the lengths of its
    edges where they count; features do not. Kept are positions of classes that state their ``version``;
    others are computed each time, since nothing would tell that such a class was edited.

    A run that is stopped, by Ctrl-C for example, leaves its state in the cache, and the next call with the
    same graph and settings goes on from there: to the same bytes, where two whole runs have the same.

    Args:
        edge_index: Any form of the graph; it is brought into the canonical one first.
        folder: The cache's folder; the user's unless given.
        edge_length: Length of each entry of ``edge_index``.
        on_step: Is told the name of a stage, how much of it is done, and how much there is.

    Example:
        >>> import tempfile, torch
        >>> from geomgcn.embeddings import Isomap
        >>> edge = torch.tensor([[0], [1]])
        >>> embed_cached(Isomap(dim=1), edge, num_nodes=2, folder=tempfile.mkdtemp()).tolist()
        [[0.5], [-0.5]]
    """
    edge_index, lengths = _canonical(embedding, edge_index, num_nodes, edge_length)
    if vars(type(embedding)).get("version") is None:
        return _checked(embedding, edge_index, num_nodes, lengths, Progress(on_step))
    settings = {**embedding.settings(), **_file_of(type(embedding)), "num_nodes": num_nodes}
    arrays = {"edge_index": edge_index.cpu().numpy()}
    if lengths is not None:
        arrays["edge_length"] = lengths.cpu().numpy()

    path = _store.state_path("positions", settings, arrays, folder)
    progress = Progress(on_step, path, _store.digest(arrays, settings))

    def compute() -> dict[str, np.ndarray]:
        return {"pos": _checked(embedding, edge_index, num_nodes, lengths, progress).cpu().numpy()}

    try:
        kept = _store.cached_arrays("positions", settings, arrays, compute, folder)
    except _FAILURES:  # going on from there would fail again
        progress.forget()
        raise
    except BaseException as stop:  # Ctrl-C above all
        if progress.flush():
            stop.add_note("What is done is kept: the same call goes on from there.")
        raise
    progress.forget()
    return torch.from_numpy(kept["pos"]).to(edge_index.device)
