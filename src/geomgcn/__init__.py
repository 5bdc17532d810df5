"""Geometric aggregation for graph neural networks: Geom-GCN on PyTorch Geometric.

Public names are imported when they are first used, so that a command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Cell": "experiments",
    "Coordinates": "embeddings",
    "Embedding": "embeddings",
    "Fit": "training",
    "GAT": "nn",
    "GCN": "nn",
    "GeomConv": "nn",
    "GeomGCN": "nn",
    "Grid": "relations",
    "Isomap": "embeddings",
    "MLP": "nn",
    "Poincare": "embeddings",
    "PolarQuadrants": "relations",
    "Quadrants": "relations",
    "RelationOperator": "relations",
    "Runs": "training",
    "Sectors": "relations",
    "Spectral": "embeddings",
    "Split": "splits",
    "Struc2Vec": "embeddings",
    "StructuralNeighborhood": "neighborhoods",
    "TrainConfig": "training",
    "fit": "training",
    "fit_many": "training",
    "fit_splits": "training",
    "published_splits": "splits",
    "random_splits": "splits",
    "row_normalize": "training",
    "run_cell": "experiments",
}
_MODULES = (
    "datasets",
    "distances",
    "embeddings",
    "experiments",
    "graphs",
    "latent",
    "neighborhoods",
    "nn",
    "quality",
    "released",
    "relations",
    "splits",
    "training",
    "viz",
)

__all__ = [
    "GAT",
    "GCN",
    "MLP",
    "Cell",
    "Coordinates",
    "Embedding",
    "Fit",
    "GeomConv",
    "GeomGCN",
    "Grid",
    "Isomap",
    "Poincare",
    "PolarQuadrants",
    "Quadrants",
    "RelationOperator",
    "Runs",
    "Sectors",
    "Spectral",
    "Split",
    "Struc2Vec",
    "StructuralNeighborhood",
    "TrainConfig",
    "datasets",
    "distances",
    "embeddings",
    "experiments",
    "fit",
    "fit_many",
    "fit_splits",
    "graphs",
    "latent",
    "neighborhoods",
    "nn",
    "published_splits",
    "quality",
    "random_splits",
    "relations",
    "released",
    "row_normalize",
    "run_cell",
    "splits",
    "training",
    "viz",
]

if TYPE_CHECKING:
    from geomgcn import datasets as datasets
    from geomgcn import distances as distances
    from geomgcn import embeddings as embeddings
    from geomgcn import experiments as experiments
    from geomgcn import graphs as graphs
    from geomgcn import latent as latent
    from geomgcn import neighborhoods as neighborhoods
    from geomgcn import nn as nn
    from geomgcn import quality as quality
    from geomgcn import relations as relations
    from geomgcn import released as released
    from geomgcn import splits as splits
    from geomgcn import training as training
    from geomgcn import viz as viz
    from geomgcn.embeddings import Coordinates as Coordinates
    from geomgcn.embeddings import Embedding as Embedding
    from geomgcn.embeddings import Isomap as Isomap
    from geomgcn.embeddings import Poincare as Poincare
    from geomgcn.embeddings import Spectral as Spectral
    from geomgcn.embeddings import Struc2Vec as Struc2Vec
    from geomgcn.experiments import Cell as Cell
    from geomgcn.experiments import run_cell as run_cell
    from geomgcn.neighborhoods import StructuralNeighborhood as StructuralNeighborhood
    from geomgcn.nn import GAT as GAT
    from geomgcn.nn import GCN as GCN
    from geomgcn.nn import MLP as MLP
    from geomgcn.nn import GeomConv as GeomConv
    from geomgcn.nn import GeomGCN as GeomGCN
    from geomgcn.relations import Grid as Grid
    from geomgcn.relations import PolarQuadrants as PolarQuadrants
    from geomgcn.relations import Quadrants as Quadrants
    from geomgcn.relations import RelationOperator as RelationOperator
    from geomgcn.relations import Sectors as Sectors
    from geomgcn.splits import Split as Split
    from geomgcn.splits import published_splits as published_splits
    from geomgcn.splits import random_splits as random_splits
    from geomgcn.training import Fit as Fit
    from geomgcn.training import Runs as Runs
    from geomgcn.training import TrainConfig as TrainConfig
    from geomgcn.training import fit as fit
    from geomgcn.training import fit_many as fit_many
    from geomgcn.training import fit_splits as fit_splits
    from geomgcn.training import row_normalize as row_normalize


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"geomgcn.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"geomgcn.{name}")
    raise AttributeError(f"module 'geomgcn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
