import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.special import stdtrit
from torch import nn
from torch_geometric.data import Data

from geomgcn.splits import Split
from geomgcn.training._config import LARGEST_SEED, TrainConfig
from geomgcn.training._fit import fit
from geomgcn.training._result import Fit, OnEpoch

OnRun = Callable[[int, Fit], None]
"""Called after each run with its place in the list of splits and its result."""


@dataclass(frozen=True)
class Summary:
    """Mean, spread and uncertainty of a list of numbers.

    Attributes:
        std: Sample standard deviation (divided by n - 1); zero for one run.
        ci95: Half-width of the 95 % interval of the mean, by Student's t; NaN for one run. Runs on
            several splits of one graph share nodes, so read it as the spread of this protocol.
        runs: How many numbers there were.
    """

    mean: float
    std: float
    ci95: float
    runs: int


def summarize(values: Sequence[float]) -> Summary:
    """Return mean, standard deviation, 95 % interval and number of runs.

    Example:
        >>> summarize([0.5, 0.7]).mean
        0.6
    """
    numbers = np.asarray(values, dtype=float)
    count = len(numbers)
    if count == 0:
        return Summary(math.nan, math.nan, math.nan, 0)
    if count == 1:
        return Summary(float(numbers[0]), 0.0, math.nan, 1)
    std = float(numbers.std(ddof=1))
    return Summary(
        float(numbers.mean()), std, float(stdtrit(count - 1, 0.975)) * std / math.sqrt(count), count
    )


@dataclass(frozen=True, eq=False)
class Runs:
    """Finished runs of one model, in the order of the splits.

    Attributes:
        fits: One result a split; fewer than splits if ``interrupted``.
        interrupted: Whether Ctrl-C ended the series early.
        failure: What went wrong in the run after the last of ``fits``, if anything did.
    """

    fits: tuple[Fit, ...]
    interrupted: bool = False
    failure: str | None = None

    @property
    def test_accuracy(self) -> Summary:
        """Summary of the test accuracies."""
        return summarize([result.test_accuracy for result in self.fits])


def fit_splits(
    make_model: Callable[[], nn.Module],
    data: Data,
    splits: Sequence[Split],
    config: TrainConfig | None = None,
    on_run: OnRun | None = None,
    on_epoch: OnEpoch | None = None,
) -> Runs:
    """Train a fresh model on each split; Ctrl-C and a run that fails keep those that are done.

    Args:
        make_model: Returns a new model; run ``i`` draws its weights from ``config.seed + i``.

    Example:
        >>> from torch_geometric.data import Data
        >>> import torch
        >>> from geomgcn.nn import MLP
        >>> from geomgcn.splits import random_splits
        >>> data = Data(x=torch.eye(6), y=torch.tensor([0, 1] * 3), edge_index=torch.zeros(2, 0).long())
        >>> splits = random_splits(data.y, (0.4, 0.3, 0.3), seed=0, num_splits=2)
        >>> fit_splits(lambda: MLP(6, 8, 2), data, splits, TrainConfig(max_epochs=3)).test_accuracy.runs
        2
    """
    config = config or TrainConfig()
    if config.seed + len(splits) - 1 > LARGEST_SEED:
        raise ValueError(
            f"{len(splits)} runs need as many seeds from seed={config.seed} on, and the largest is "
            f"{LARGEST_SEED}. Take a smaller seed."
        )
    done: list[Fit] = []
    try:
        for i, split in enumerate(splits):
            # A module draws its first weights from the global generator, which is the caller's.
            with torch.random.fork_rng(devices=[]):
                model = make_model()
            result = fit(model, data, split, replace(config, seed=config.seed + i), on_epoch)
            done.append(result)
            if on_run is not None:
                on_run(i, result)
    except KeyboardInterrupt:
        return Runs(tuple(done), interrupted=True)
    except RuntimeError as error:  # diverged, or out of memory
        if not done:
            raise
        failure = f"Run {len(done)} failed: {error}"
        warnings.warn(f"{failure.rstrip('.')}. The {len(done)} runs before it are kept.", stacklevel=2)
        return Runs(tuple(done), failure=failure)
    return Runs(tuple(done))
