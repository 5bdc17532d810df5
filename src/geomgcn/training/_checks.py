"""What training refuses before it begins, and where it runs."""

import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from geomgcn.graphs import check_edges, check_features
from geomgcn.splits import Split


def resolve_device(name: str) -> torch.device:
    """Return the device for a name; ``"auto"`` is CUDA where there is one, else the CPU.

    Example:
        >>> resolve_device("cpu")
        device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"Unknown device {name!r}. Use 'auto', 'cpu', 'cuda' or 'cuda:0'.") from None
    available: dict[str, Callable[[], bool]] = {
        "cpu": lambda: True,
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
        "xpu": torch.xpu.is_available,
    }
    if device.type not in available:
        raise ValueError(f"Training does not run on device {name!r}. Use 'auto', 'cpu', 'cuda' or 'cuda:0'.")
    if not available[device.type]():
        what = device.type.upper()
        raise ValueError(f"device={name!r} needs a {what} device, and none is visible. Use device='cpu'.")
    return device


def check_input(model: nn.Module, data: Data, split: Split) -> None:
    """Refuse data that a model cannot be trained on, in words that say what to do.

    Example:
        >>> data = Data(x=torch.eye(3), y=torch.tensor([0, 1, 1]), edge_index=torch.zeros(2, 0).long())
        >>> nodes = torch.arange(3)
        >>> check_input(nn.Linear(3, 2), data, Split(nodes == 0, nodes == 1, nodes == 2))
    """
    for name, what in (("x", "features"), ("y", "labels"), ("edge_index", "edges")):
        if data.get(name) is None:
            raise ValueError(f"Training needs {what} in data.{name}, got none. Set data.{name} first.")
    num_nodes = data.x.size(0)
    if split.train.numel() != num_nodes:
        raise ValueError(
            f"The split covers {split.train.numel()} nodes, but the graph has {num_nodes}. "
            f"Make the split from this graph's labels."
        )
    check_features(data.x)
    check_edges(data.edge_index, num_nodes)
    _check_types(model, data)


def _check_types(model: nn.Module, data: Data) -> None:
    """Refuse what torch would refuse in words of its own, in the middle of a layer."""
    if data.y.dtype != torch.int64:
        raise ValueError(
            f"Training needs class ids of dtype torch.int64 in data.y, got {data.y.dtype}. Use data.y.long()."
        )
    weight = next((parameter for parameter in model.parameters()), None)
    if weight is not None and weight.dtype != data.x.dtype:
        raise ValueError(
            f"Training needs features of the model's type, {weight.dtype}, got {data.x.dtype}. "
            f"Use data.x.to({weight.dtype})."
        )
    called = getattr(model, "prepare", model.forward)
    wanted = inspect.signature(called).parameters.get("edge_type")
    if data.get("edge_type") is None and wanted is not None and wanted.default is wanted.empty:
        raise ValueError(
            f"{type(model).__name__} needs edge_type, got data without it. "
            f"Apply StructuralNeighborhood() to data with positions first."
        )
    num_edges = data.edge_index.size(1)
    for name in ("edge_type", "edge_weight"):
        if data.get(name) is not None and data[name].shape != (num_edges,):
            raise ValueError(
                f"Training needs one entry of data.{name} for each of {num_edges} edges, got shape "
                f"{list(data[name].shape)}. Apply StructuralNeighborhood() to write all three alike."
            )
    weights = data.get("edge_weight")
    if weights is not None and not bool(weights.isfinite().all()):
        raise ValueError(
            f"Training needs finite weights in data.edge_weight, got {int((~weights.isfinite()).sum())} that "
            f"are not, first at edge {int((~weights.isfinite()).nonzero()[0])}. Leave those edges out."
        )


def check_outputs(num_outputs: int, y: Tensor) -> None:
    """Refuse a model with fewer outputs than classes.

    Example:
        >>> check_outputs(2, torch.tensor([0, 1]))
    """
    wanted = int(y.max()) + 1
    if num_outputs < wanted:
        raise ValueError(
            f"Labels go up to {wanted - 1}, so the model needs {wanted} outputs, got {num_outputs}. "
            f"Build it with out_channels={wanted}."
        )
