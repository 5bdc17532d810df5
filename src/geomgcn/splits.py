"""Training, validation and test nodes: the published splits, random ones, and their checks."""

import math
import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from geomgcn._types import Label, NodeMask

AbsentClass = Literal["refuse", "warn"]
ROUNDING_SLACK = 1e-9  # float64: 0.6 + 0.2 + 0.2 may exceed 1, and 0.29 * 100 falls short of 29


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of nodes; some nodes may be in none.

    Example:
        >>> nodes = torch.arange(4)
        >>> split = Split(nodes < 2, nodes == 2, nodes == 3)
        >>> split
        Split(train=2, val=1, test=1, num_nodes=4)
    """

    train: NodeMask
    val: NodeMask
    test: NodeMask

    def __post_init__(self) -> None:
        parts = self.parts()
        shapes = [list(mask.shape) for mask in parts.values()]
        if any(
            mask.dtype != torch.bool or mask.dim() != 1 or mask.shape != self.train.shape
            for mask in parts.values()
        ):
            raise ValueError(
                f"Split needs three bool masks over the same nodes, "
                f"got {[str(mask.dtype) for mask in parts.values()]} of shapes {shapes}. "
                f"Take one column of data.train_mask, or use published_splits(data)."
            )
        for one, other in (("train", "val"), ("train", "test"), ("val", "test")):
            shared = (parts[one] & parts[other]).nonzero()
            if len(shared):
                raise ValueError(
                    f"Split needs disjoint sets, got {len(shared)} nodes in both {one} and {other}, "
                    f"first node {int(shared[0])}. Remove them from one of the two."
                )

    def parts(self) -> dict[str, Tensor]:
        """Return the masks by name: train, val, test.

        Example:
            >>> none = torch.zeros(2, dtype=torch.bool)
            >>> list(Split(~none, none, none).parts())
            ['train', 'val', 'test']
        """
        return {"train": self.train, "val": self.val, "test": self.test}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={int(mask.sum())}" for name, mask in self.parts().items())
        return f"Split({sizes}, num_nodes={self.train.numel()})"


def random_splits(
    y: Label,
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2),
    per_class: bool = True,
    seed: int = 0,
    num_splits: int = 10,
) -> list[Split]:
    """Draw random splits of the labelled nodes (60/20/20 per class in Section 4.2).

    Cuts are rounded cumulatively, so that the parts of a class always add up: a class of one
    node is in ``train`` alone. Nodes with label -1 enter no part. The first splits do not depend
    on ``num_splits``. :func:`check_split` reports classes that a part lacks.

    Args:
        shares: Of train, val and test; what they leave out of 1 enters no part. The published
            splits have about (0.48, 0.32, 0.20).
        per_class: Whether each class is divided on its own, or all nodes at once.

    Example:
        >>> random_splits(torch.tensor([0] * 5 + [1] * 10), num_splits=2)
        [Split(train=9, val=3, test=3, num_nodes=15), Split(train=9, val=3, test=3, num_nodes=15)]
    """
    _check_shares(shares)
    if num_splits < 1:
        raise ValueError(
            f"random_splits needs num_splits of at least 1, got {num_splits}. "
            f"Pass num_splits=10 as in the paper."
        )
    if y.is_floating_point() or y.dtype == torch.bool or y.dim() != 1:
        raise ValueError(
            f"random_splits needs integer class ids, one a node, got {y.dtype} of shape {list(y.shape)}. "
            f"Pass y.long(), and reshape one column with y.view(-1)."
        )
    if not 0 <= seed < 2**63:
        raise ValueError(f"random_splits needs a seed from 0 to 2^63 - 1, got {seed!r}.")
    labelled = (y >= 0).nonzero().flatten().cpu()
    if labelled.numel() == 0:
        raise ValueError(
            f"random_splits needs labelled nodes, got none among {y.numel()}. Pass y with class ids from 0."
        )
    group = y.cpu()[labelled] if per_class else torch.zeros_like(labelled)
    count = torch.bincount(group)
    start = count.cumsum(0) - count
    first_cut, second_cut, end = (
        torch.floor(count.double() * share + 0.5 + ROUNDING_SLACK).long()
        for share in (shares[0], shares[0] + shares[1], sum(shares))
    )
    generator = torch.Generator().manual_seed(seed)
    splits = []
    for _ in range(num_splits):
        shuffled = torch.randperm(labelled.numel(), generator=generator)
        by_class = shuffled[torch.argsort(group[shuffled], stable=True)]
        member = group[by_class]
        rank = torch.arange(by_class.numel()) - start[member]
        cuts = (rank < first_cut[member], rank < second_cut[member], rank < end[member])
        nodes = labelled[by_class]
        splits.append(
            Split(
                _mask(nodes[cuts[0]], y),
                _mask(nodes[cuts[1] & ~cuts[0]], y),
                _mask(nodes[cuts[2] & ~cuts[1]], y),
            )
        )
    return splits


def published_splits(data: Data) -> list[Split]:
    """Return the splits that came with a data set, one for each column of its masks.

    A mask of one column belongs to every split, as the test nodes of PyG's WikiCS do.

    Example:
        >>> mask = torch.eye(3, dtype=torch.bool)
        >>> published_splits(Data(train_mask=mask, val_mask=mask.roll(1, 0), test_mask=mask.roll(2, 0)))[0]
        Split(train=1, val=1, test=1, num_nodes=3)
    """
    names = ("train_mask", "val_mask", "test_mask")
    absent = [name for name in names if data.get(name) is None]
    if absent:
        raise ValueError(
            f"published_splits needs train_mask, val_mask and test_mask, "
            f"got data without {', '.join(absent)}. "
            f"Use random_splits(data.y) for a graph without published splits."
        )
    masks = {name: data[name].view(data[name].shape[0], -1) for name in names}
    counts = {name: mask.shape[1] for name, mask in masks.items()}
    num_splits = max(counts.values())
    if any(count not in (1, num_splits) for count in counts.values()):
        raise ValueError(
            f"published_splits needs equally many columns in all masks, or one for all splits, got {counts}. "
            f"Leave out the columns that have no partner."
        )
    columns = [mask.expand(-1, num_splits).unbind(dim=1) for mask in masks.values()]
    return [Split(*parts) for parts in zip(*columns, strict=True)]


def check_split(split: Split, y: Label, absent_class: AbsentClass = "refuse") -> None:
    """Refuse a split that cannot be trained on; warn of one whose figures say less than they seem to.

    Refused are an empty ``train``, a class that no node of ``train`` has, and nodes without a label in
    any part. Warned of are an empty ``val`` or ``test``, and a class that one of them lacks.

    Args:
        absent_class: ``"warn"`` of a class that ``train`` lacks. Four of the ten published splits of Texas
            are such, since one of its classes has a single node.

    Example:
        >>> node = torch.eye(3, dtype=torch.bool)
        >>> check_split(Split(node[0], node[1], node[2]), torch.tensor([0, 1, 1]))
        Traceback (most recent call last):
        ValueError: The split has no train nodes of class 1: nodes of it can never be predicted right. ...
    """
    if y.shape != split.train.shape:
        raise ValueError(
            f"A split needs as many nodes as y, got {split.train.numel()} and y of shape {list(y.shape)}. "
            f"Make it from the same data with random_splits(data.y)."
        )
    for name, mask in split.parts().items():
        unlabelled = (mask & (y < 0)).nonzero()
        if len(unlabelled):
            raise ValueError(
                f"A split needs labelled nodes, got {len(unlabelled)} without a label in {name}, "
                f"first node {int(unlabelled[0])}. Remove nodes with y == -1 from it."
            )
    if not split.train.any():
        raise ValueError(
            "A split needs labelled training nodes, got none. Raise the training share, or label some nodes."
        )
    for name, message in _gaps(split, y):
        if name == "train" and absent_class == "refuse":
            raise ValueError(
                f"{message} Put nodes of it into train, or take it out of the labels with y = -1; "
                f"absent_class='warn' trains all the same."
            )
        warnings.warn(message, UserWarning, stacklevel=2)


def _gaps(split: Split, y: Tensor) -> list[tuple[str, str]]:
    """Return each part that lacks something, with what it lacks and what follows from it."""
    effect = {
        "train": "nodes of it can never be predicted right",
        "val": "early stopping does not see it",
        "test": "the accuracy says nothing about it",
    }
    empty = {
        "val": "early stopping and the choice of the best weights have nothing to go by",
        "test": "there will be no test accuracy",
    }
    classes = set(y[y >= 0].tolist())
    found = []
    for name, mask in split.parts().items():
        missing = sorted(classes - set(y[mask].tolist()))
        if not mask.any():
            found.append((name, f"The split has no {name} nodes: {empty[name]}."))
        elif missing:
            which = f"class {missing[0]}" if len(missing) == 1 else f"classes {', '.join(map(str, missing))}"
            found.append((name, f"The split has no {name} nodes of {which}: {effect[name]}."))
    return found


def _check_shares(shares: tuple[float, float, float]) -> None:
    """Refuse shares that are no shares."""
    fine = len(shares) == 3 and all(math.isfinite(share) and share >= 0 for share in shares)
    if not fine or shares[0] <= 0 or sum(shares) > 1 + ROUNDING_SLACK:
        raise ValueError(
            f"random_splits needs three shares of at least 0 that add up to at most 1, the first above 0, "
            f"got shares={shares!r}. Pass shares=(0.6, 0.2, 0.2) as in the paper."
        )


def _mask(nodes: Tensor, y: Tensor) -> Tensor:
    """Return the bool mask of a set of nodes."""
    mask = torch.zeros(y.shape[0], dtype=torch.bool)
    mask[nodes] = True
    return mask.to(y.device)
