import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from geomgcn.training._result import Fit

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
        fits: One result a split; fewer than splits if ``interrupted``, or where a run failed.
        interrupted: Whether Ctrl-C ended the series early.
        failure: What went wrong, if anything did.
        places: Which split each of ``fits`` belongs to; the first ones, unless runs went side by side.
    """

    fits: tuple[Fit, ...]
    interrupted: bool = False
    failure: str | None = None
    places: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.places:
            object.__setattr__(self, "places", tuple(range(len(self.fits))))

    @property
    def test_accuracy(self) -> Summary:
        """Summary of the test accuracies."""
        return summarize([result.test_accuracy for result in self.fits])
