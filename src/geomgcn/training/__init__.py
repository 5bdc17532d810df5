"""Training: one run, several runs, and the presets of the paper and of its released program."""

from geomgcn.training._checks import resolve_device as resolve_device
from geomgcn.training._config import TrainConfig as TrainConfig
from geomgcn.training._fit import fit as fit
from geomgcn.training._many import fit_many as fit_many
from geomgcn.training._many import fit_splits as fit_splits
from geomgcn.training._presets import PRESETS as PRESETS
from geomgcn.training._presets import Preset as Preset
from geomgcn.training._presets import gat_out_heads as gat_out_heads
from geomgcn.training._presets import hidden_channels as hidden_channels
from geomgcn.training._presets import preset_by_name as preset_by_name
from geomgcn.training._presets import row_normalize as row_normalize
from geomgcn.training._presets import weight_decay as weight_decay
from geomgcn.training._result import Fit as Fit
from geomgcn.training._result import OnEpoch as OnEpoch
from geomgcn.training._runs import OnRun as OnRun
from geomgcn.training._runs import Runs as Runs
from geomgcn.training._runs import Summary as Summary
from geomgcn.training._runs import summarize as summarize
