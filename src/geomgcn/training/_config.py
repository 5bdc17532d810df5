from dataclasses import dataclass
from typing import Literal, get_args

from geomgcn.splits import AbsentClass

Checkpoint = Literal["best", "last"]
Precision = Literal["float32", "tf32", "bfloat16"]
LARGEST_SEED = 2**32 - 1  # what every generator takes
LARGEST_RATE = 1e30  # float32 ends at 3e38


@dataclass(frozen=True)
class TrainConfig:
    """How one run is trained; the defaults are the paper's (Section 4.2).

    Args:
        weight_decay: L2 penalty inside Adam.
        max_epochs: Upper bound; early stopping usually ends the run before.
        patience: Epochs without an equal or better validation accuracy or loss before the run ends.
        checkpoint: Weights that are tested: ``"best"``, those of the highest validation accuracy (the
            lower loss among equals), or ``"last"``, those of the last epoch, as in the released program.
        decay_factor: Factor for the learning rate when the validation loss stands still for
            ``decay_patience`` epochs; 1 switches it off.
        seed: Of the initial weights and of dropout.
        absent_class: ``"refuse"`` or ``"warn"`` of a split without a training node of some class.
        device: ``"auto"`` takes a CUDA device where there is one.
        precision: Of a Geom-GCN's products; weights and Adam stay as they are. ``"tf32"`` and ``"bfloat16"``
            are faster on a GPU and keep 11 and 8 bits of a number in place of 24; ``"bfloat16"`` halves
            the memory of what is in between. On a CPU ``"tf32"`` changes nothing and ``"bfloat16"`` is slow.

    Example:
        >>> TrainConfig(max_epochs=10).patience
        100
    """

    learning_rate: float = 0.05
    weight_decay: float = 5e-5
    max_epochs: int = 5000
    patience: int = 100
    checkpoint: Checkpoint = "best"
    decay_factor: float = 0.8
    decay_patience: int = 50
    seed: int = 0
    absent_class: AbsentClass = "refuse"
    device: str = "auto"
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        for name in ("learning_rate", "decay_factor"):
            value = getattr(self, name)
            if not 0 < value <= LARGEST_RATE:
                raise ValueError(
                    f"{name} must be positive and at most {LARGEST_RATE:g}, got {value!r}. {_default(name)}"
                )
        if self.decay_factor > 1:
            raise ValueError(
                f"decay_factor must be at most 1, which switches it off, got {self.decay_factor!r}. "
                f"{_default('decay_factor')}"
            )
        if not 0 <= self.weight_decay <= LARGEST_RATE:
            raise ValueError(
                f"weight_decay must be from 0 to {LARGEST_RATE:g}, got {self.weight_decay!r}. "
                f"{_default('weight_decay')}"
            )
        for name in ("max_epochs", "patience", "decay_patience"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number from 1, got {value!r}. {_default(name)}")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise ValueError(f"seed is a number from 0 to {LARGEST_SEED}, got {self.seed!r}.")
        if self.checkpoint not in ("best", "last"):
            raise ValueError(f"checkpoint is 'best' or 'last', got {self.checkpoint!r}.")
        if self.precision not in get_args(Precision):
            raise ValueError(
                f"precision is one of {', '.join(map(repr, get_args(Precision)))}, got {self.precision!r}."
            )
        if self.absent_class not in ("refuse", "warn"):
            raise ValueError(f"absent_class is 'refuse' or 'warn', got {self.absent_class!r}.")


def _default(name: str) -> str:
    return f"The default is {name}={getattr(TrainConfig, name)!r}."
