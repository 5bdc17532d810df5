"""What each command of the command line takes; the docstrings and hints are its help.

Only light modules are imported here, so that help and wrong usage are answered at once.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional, arg

Graph = Annotated[
    Positional[str],
    arg(metavar="GRAPH", help="Name of a data set (see 'geomgcn datasets'), or an .npz file with a graph."),
]
Json = Annotated[bool, arg(help="Print one JSON object as the last line, and nothing else.")]


@dataclass(frozen=True)
class Train:
    """Train a model over several splits and print its test accuracy."""

    graph: Graph
    model: Annotated[str, arg(help="geom-gcn, gcn, gat or mlp.")] = "geom-gcn"
    neighborhood: Annotated[
        str,
        arg(
            help="Space of the structural neighborhood: 'isomap', 'poincare', 'struc2vec', 'spectral', "
            "'coordinates', 'released:struc2vec', 'module:Class' of your own, with settings as in "
            "'isomap(landmarks=500)'; 'A+B' takes A for N_g and B for N_s, 'A,B' both side by side."
        ),
    ] = "isomap"
    use: Annotated[
        Literal["both", "graph", "latent"], arg(help="Both neighborhoods, or one (the paper's -g and -s).")
    ] = "both"
    control: Annotated[
        bool, arg(help="Rename the nodes of N_s at random: the size stays, the meaning goes.")
    ] = False
    relation: Annotated[
        str | None,
        arg(
            help="Relation operator: quadrants, polarquadrants, grid:1, sectors:8, module:Class of your own. "
            "Default: the paper's."
        ),
    ] = None
    preset: Annotated[
        str, arg(help="'paper' (sound rules) or 'released' (those of the released program).")
    ] = "paper"
    splits: Annotated[
        Literal["auto", "published", "random"],
        arg(help="The ten published splits, or random ones, 60/20/20 of each class."),
    ] = "auto"
    num_splits: Annotated[int | None, arg(help="How many splits. Default: all published ones, or ten.")] = (
        None
    )
    seed: Annotated[int, arg(help="Of weights, dropout and random splits.")] = 0
    hidden: Annotated[
        int | None, arg(help="Hidden width, of one virtual node or head. Default: the paper's.")
    ] = None
    dropout: float = 0.5
    learning_rate: float = 0.05
    weight_decay: Annotated[float | None, arg(help="A number of your own instead of --decay.")] = None
    max_epochs: int = 5000
    patience: Annotated[
        int, arg(help="Epochs without an equal or better validation point before the end.")
    ] = 100
    device: Annotated[str, arg(help="auto, cpu, cuda, cuda:0.")] = "auto"
    checkpoint: Annotated[
        Literal["best", "last"] | None, arg(help="Weights that are tested. Default: the preset's.")
    ] = None
    overlap: Annotated[
        Literal["both", "graph", "latent"] | None,
        arg(help="A pair in N_g and N_s counts in both, or in one. Default: the preset's."),
    ] = None
    norm: Annotated[
        Literal["graph", "union"] | None,
        arg(help="Degrees behind the weights of pairs. Default: the preset's."),
    ] = None
    baseline_edges: Annotated[
        Literal["symmetric", "stored"] | None, arg(help="Edges of GCN and GAT. Default: the preset's.")
    ] = None
    direction: Annotated[
        Literal["gather", "filed"] | None,
        arg(help="Of messages along published neighborhood files. Default: the preset's."),
    ] = None
    self_loops: Annotated[
        Literal["on", "off"] | None,
        arg(help="A virtual node for a node's own features. Default: the preset's."),
    ] = None
    decay: Annotated[
        Literal["run", "printed"] | None,
        arg(help="Weight decay as the released command lines have it, or as the paper prints it."),
    ] = None
    json: Json = False


@dataclass(frozen=True)
class Embed:
    """Map a graph to a latent space and write the positions."""

    graph: Graph
    embedding: Annotated[
        str,
        arg(
            help="isomap, poincare, struc2vec, spectral, coordinates, or module:Class of your own; with "
            "settings as in 'poincare(epochs=50, mode=hogwild)'."
        ),
    ] = "isomap"
    dim: Annotated[int | None, arg(help="Axes of the latent space. Default: the embedding's, 2.")] = None
    seed: Annotated[int | None, arg(help="Of what is random in the embedding. Default: 0.")] = None
    device: Annotated[str, arg(help="auto, cpu, cuda, cuda:0; for embeddings that can use a GPU.")] = "cpu"
    out: Annotated[Path | None, arg(help="File for the positions: .csv, .npz or .parquet.")] = None
    report: Annotated[bool, arg(help="Measure how good the positions are; no labels are looked at.")] = False
    pictures: Annotated[
        Path | None, arg(help="Folder for a page with that report and pictures of the space.")
    ] = None
    node: Annotated[int | None, arg(help="Whose neighborhoods are drawn. Default: a typical one.")] = None
    json: Json = False


@dataclass(frozen=True)
class Neighborhood:
    """Describe the structural neighborhood of a graph, and write its pairs."""

    graph: Graph
    neighborhood: Annotated[str, arg(help="As for 'geomgcn train'.")] = "isomap"
    relation: Annotated[str | None, arg(help="As for 'geomgcn train'.")] = None
    out: Annotated[Path | None, arg(help="File for the pairs: .csv, .npz or .parquet.")] = None
    json: Json = False


@dataclass(frozen=True)
class Datasets:
    """Print the statistics of the data sets beside the paper's."""

    names: Annotated[Positional[tuple[str, ...]], arg(help="Data sets. Default: the paper's nine.")] = field(
        default_factory=tuple
    )
    json: Json = False


@dataclass(frozen=True)
class Demo:
    """Train all models on the embedded graph, and write a report with pictures."""

    out: Annotated[Path, arg(help="Folder of the report.")] = Path("demo-report")
    num_splits: Annotated[int, arg(help="How many random splits.")] = 10
    seed: int = 0
    json: Json = False


@dataclass(frozen=True)
class Doctor:
    """Check the installation: versions, device, cache folder, mirror, compiled kernels."""

    json: Json = False


Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Embed, tyro.conf.subcommand("embed")]
    | Annotated[Neighborhood, tyro.conf.subcommand("neighborhood")]
    | Annotated[Datasets, tyro.conf.subcommand("datasets")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Doctor, tyro.conf.subcommand("doctor")]
)
COMMANDS = ("train", "embed", "neighborhood", "datasets", "demo", "doctor")
