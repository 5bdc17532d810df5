from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from geomgcn._names import canonical, lookup
from geomgcn.datasets import is_graph_file
from geomgcn.neighborhoods import Norm, Overlap
from geomgcn.training import Preset, TrainConfig, hidden_channels, preset_by_name
from geomgcn.training._config import LARGEST_SEED, Checkpoint
from geomgcn.training._presets import Decay, Direction, Edges, SelfLoops

MODELS = {"geom-gcn": "Geom-GCN", "gcn": "GCN", "gat": "GAT", "mlp": "MLP"}

Use = Literal["both", "graph", "latent"]
Splits = Literal["auto", "published", "random"]

_RULES = {
    "checkpoint": Checkpoint,
    "overlap": Overlap,
    "norm": Norm,
    "baseline_edges": Edges,
    "direction": Direction,
    "self_loops": SelfLoops,
    "decay": Decay,
}
_CHOICES = {"use": Use, "splits": Splits, **_RULES}

MOST_HIDDEN = 2**16  # the paper's widest has 64


@dataclass(frozen=True)
class Cell:
    """One table entry: a model on a data set under a protocol.

    Args:
        dataset: Name of a data set, or path of an ``.npz`` file with a graph.
        model: ``"geom-gcn"``, ``"gcn"``, ``"gat"`` or ``"mlp"``.
        neighborhood: A space (``"isomap"``, ``"released:poincare"``), a space for N_g and another for N_s
            (``"isomap+coordinates"``), or spaces side by side (``"released:isomap,released:poincare"``).
        use: Both neighbourhoods, or one (the paper's -g and -s).
        control: Rename the nodes of the latent neighbourhood at random: what is left is its size.
        relation: Relation operator, for example ``"sectors:8"``; the paper's for the space if left out.
        preset: ``"paper"`` or ``"released"``. Each rule below overrides the preset's where it is given.
        splits: The ``"published"`` ten, ``"random"`` 60 / 20 / 20 per class, or ``"auto"``: the first
            where there are any.
        num_splits: How many splits to run; all published ones, or ten random ones, if left out.
        hidden: Hidden width (of one virtual node, or head); the paper's if left out.
        train: Training settings, but for ``seed``, ``weight_decay`` and ``checkpoint``, which are the cell's.
            A split without a training node of some class is warned of in a data set, whose published
            splits are as they are, and refused in a graph of one's own.

    Example:
        >>> Cell("texas", neighborhood="released:poincare", preset="released").title
        'Geom-GCN released:poincare'
    """

    dataset: str
    model: str = "geom-gcn"
    neighborhood: str = "isomap"
    use: Use = "both"
    control: bool = False
    relation: str | None = None
    preset: str = "paper"
    splits: Splits = "auto"
    num_splits: int | None = None
    seed: int = 0
    hidden: int | None = None
    dropout: float = 0.5
    weight_decay: float | None = None
    checkpoint: Checkpoint | None = None
    overlap: Overlap | None = None
    norm: Norm | None = None
    baseline_edges: Edges | None = None
    direction: Direction | None = None
    self_loops: SelfLoops | None = None
    decay: Decay | None = None
    train: TrainConfig = TrainConfig()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        lookup("model", self.model, MODELS)
        preset_by_name(self.preset)
        for name, kind in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in get_args(kind):
                raise ValueError(f"{name} is one of {', '.join(map(repr, get_args(kind)))}, got {value!r}.")
        for name, most in (("num_splits", LARGEST_SEED), ("hidden", MOST_HIDDEN)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or not 1 <= value <= most):
                raise ValueError(
                    f"{name} must be a whole number from 1 to {most}, got {value!r}. "
                    f"Leave it out for the paper's."
                )
        if self.control and self.use == "graph":
            raise ValueError(
                "control=True renames the nodes of N_s, and use='graph' leaves N_s out. "
                "Take use='both' or use='latent' for a control."
            )
        for name in ("seed", "weight_decay", "checkpoint"):
            if getattr(self.train, name) != getattr(TrainConfig, name):
                raise ValueError(
                    f"A cell has a {name} of its own, got train={self.train!r}. "
                    f"Pass Cell(..., {name}={getattr(self.train, name)!r})."
                )
        if not 0 <= self.seed <= LARGEST_SEED:
            raise ValueError(f"seed is a number from 0 to {LARGEST_SEED}, got {self.seed!r}.")
        if not 0 <= self.dropout < 1:
            raise ValueError(
                f"dropout must be at least 0 and below 1, got {self.dropout!r}. "
                f"Leave it out for the paper's 0.5."
            )

    @property
    def rules(self) -> Preset:
        """The preset with this cell's own rules in place."""
        given = {name: value for name in _RULES if (value := getattr(self, name)) is not None}
        return replace(preset_by_name(self.preset), **given)

    @property
    def config(self) -> TrainConfig:
        """Training settings of every run of the cell; the seed is that of the first."""
        config = replace(self.rules.train_config(self.dataset, self.train), seed=self.seed)
        if not is_graph_file(self.dataset):  # published splits are as they are, those of one's own can change
            config = replace(config, absent_class="warn")
        return config if self.weight_decay is None else replace(config, weight_decay=self.weight_decay)

    @property
    def width(self) -> int:
        """Hidden width of the model."""
        return self.hidden or hidden_channels(self.dataset, self.model)

    @property
    def title(self) -> str:
        """Name of the row in a table."""
        name = MODELS[canonical(self.model)]
        if canonical(self.model) != "geom-gcn":
            return name
        suffix = {"both": "", "graph": "-g", "latent": "-s"}[self.use]
        return f"{name} {self.neighborhood}{suffix}" + (", random N_s" if self.control else "")


def cell_fields() -> tuple[str, ...]:
    """Return the names of a cell's settings.

    Example:
        >>> cell_fields()[:2]
        ('dataset', 'model')
    """
    return tuple(field.name for field in fields(Cell))
