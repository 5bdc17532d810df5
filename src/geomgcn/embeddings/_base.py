"""What every embedding promises, how it is found by name, and how its result is kept."""

import dataclasses
import inspect
import os
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from geomgcn import _store, graphs
from geomgcn._names import lookup
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

    version: ClassVar[int] = 1
    """Raised when the same settings give other positions than before, so that old caches are left."""

    equivariant: ClassVar[bool] = False
    """Whether renumbering the nodes of a graph without symmetries renumbers the positions, and no more."""

    cacheable: ClassVar[bool] = True
    """Whether :func:`embed_cached` keeps the result."""

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

        Args:
            edge_index: The canonical graph, as :func:`geomgcn.graphs.canonical_edges` returns it.
        """

    def settings(self) -> dict[str, Any]:
        """Return all that the positions of a graph depend on, as JSON can hold it.

        Example:
            >>> from geomgcn.embeddings import Isomap
            >>> Isomap(dim=3).settings()
            {'embedding': 'isomap', 'version': 1, 'dim': 3}
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"embedding": type(self).__name__.lower(), "version": self.version, **fields}

    def forward(self, data: Data) -> Data:
        """Write ``pos`` and ``geometry`` to ``data``."""
        if data.edge_index is None:
            raise ValueError(
                f"{type(self).__name__} needs data.edge_index, got none. "
                f"Set it to an empty [2, 0] tensor of dtype torch.int64 for a graph without edges."
            )
        if "num_virtual_nodes" in data:
            raise ValueError(
                f"{type(self).__name__} needs the edges of a graph, got a structural neighborhood. "
                f"Embed the data before StructuralNeighborhood is applied."
            )
        num_nodes = data.num_nodes
        edge_index, _ = graphs.canonical_edges(data.edge_index, num_nodes)
        data.pos = self.embed(edge_index, num_nodes)
        data.geometry = self.geometry
        return data


def by_name(name: str) -> type[Embedding]:
    """Return the embedding class of that name, ours or a user's; case does not matter.

    Example:
        >>> by_name("isomap").__name__
        'Isomap'
        >>> by_name("isomapp")
        Traceback (most recent call last):
        ValueError: Unknown embedding 'isomapp'. Did you mean 'isomap'? Known: ...
    """
    return lookup("embedding", name, known())


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


def embed_cached(
    embedding: Embedding,
    edge_index: EdgeIndex,
    num_nodes: int,
    folder: str | os.PathLike[str] | None = None,
) -> Position:
    """Return ``embedding.embed(...)``, from the cache where it holds these positions already.

    The key is ``embedding.settings()``, the canonical graph and its number of nodes; features do
    not count.

    Args:
        edge_index: Any form of the graph; it is brought into the canonical one first.
        folder: The cache's folder; the user's unless given.

    Example:
        >>> import tempfile, torch
        >>> from geomgcn.embeddings import Isomap
        >>> edge = torch.tensor([[0], [1]])
        >>> embed_cached(Isomap(dim=1), edge, num_nodes=2, folder=tempfile.mkdtemp()).tolist()
        [[0.5], [-0.5]]
    """
    edge_index, _ = graphs.canonical_edges(edge_index, num_nodes)
    if not embedding.cacheable:
        return embedding.embed(edge_index, num_nodes)
    arrays = _store.cached_arrays(
        "positions",
        {**embedding.settings(), "num_nodes": num_nodes},
        {"edge_index": edge_index.cpu().numpy()},
        lambda: {"pos": embedding.embed(edge_index, num_nodes).cpu().numpy()},
        folder,
    )
    return torch.from_numpy(arrays["pos"]).to(edge_index.device)
