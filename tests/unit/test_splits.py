import warnings
from fractions import Fraction

import pytest
import torch
from jaxtyping import TypeCheckError
from torch_geometric.data import Data

from geomgcn.splits import Split, check_split, published_splits, random_splits
from graphs import unchecked


def mask(*bits: int) -> torch.Tensor:
    return torch.tensor(bits, dtype=torch.bool)


def labels(*counts: int) -> torch.Tensor:
    """Return shuffled labels with ``counts[c]`` nodes of class c."""
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return y[torch.randperm(len(y), generator=torch.Generator().manual_seed(1))]


@pytest.mark.parametrize("shares", [(0.6, 0.2, 0.2), (0.48, 0.32, 0.2), (0.1, 0.1, 0.3)])
def test_shares_hold_in_every_class(shares):
    y = labels(7, 50, 123)
    for split in random_splits(y, shares, seed=3, num_splits=4):
        for label, count in enumerate((7, 50, 123)):
            for part, share in zip((split.train, split.val, split.test), shares, strict=True):
                assert abs(int(part[y == label].sum()) - count * share) <= 1
        total = int((split.train | split.val | split.test).sum())
        assert (total == len(y)) == (sum(Fraction(str(share)) for share in shares) == 1)


def test_splits_without_classes_have_exact_sizes():
    split = random_splits(labels(7, 43), per_class=False)[0]
    assert [int(part.sum()) for part in (split.train, split.val, split.test)] == [30, 10, 10]


def test_every_node_can_reach_every_part():
    y = labels(5, 5)
    splits = random_splits(y, num_splits=60)
    for part in ("train", "val", "test"):
        assert torch.stack([split.parts()[part] for split in splits]).any(dim=0).all()


def test_seed_decides_and_more_splits_keep_the_first():
    y = labels(20, 20)
    few, many = random_splits(y, num_splits=2), random_splits(y, num_splits=5)
    assert all(
        torch.equal(a.train, b.train) and torch.equal(a.test, b.test) for a, b in zip(few, many, strict=False)
    )
    assert not torch.equal(many[0].train, many[1].train)
    assert not torch.equal(many[0].train, random_splits(y, seed=1)[0].train)


def test_global_random_state_is_left_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    random_splits(labels(5, 5))
    assert torch.equal(before, torch.get_rng_state())


def test_unlabelled_nodes_enter_no_part():
    y = labels(5, 5)
    y[3] = -1
    for split in random_splits(y):
        assert not (split.train | split.val | split.test)[3]


def test_class_of_one_node_is_for_training():
    y = torch.tensor([0, 1, 1, 1, 1, 1])
    assert all(split.train[0] for split in random_splits(y))


def test_nothing_labelled_is_refused():
    with pytest.raises(ValueError, match=r"needs labelled nodes, got none among 3\. Pass y"):
        random_splits(torch.full((3,), -1))


@pytest.mark.parametrize(
    "shares", [(0.6, 0.3, 0.2), (0.0, 0.5, 0.5), (0.5, -0.1, 0.2), (float("nan"), 0.1, 0.1)]
)
def test_bad_shares_are_refused(shares):
    with pytest.raises(ValueError, match=r"needs three shares.*got shares=.*Pass shares=\(0.6, 0.2, 0.2\)"):
        random_splits(labels(5), shares)


def test_no_splits_are_refused():
    with pytest.raises(ValueError, match=r"num_splits of at least 1, got 0\. Pass num_splits=10"):
        random_splits(labels(5), num_splits=0)


def test_shared_nodes_are_refused():
    with pytest.raises(
        ValueError, match=r"disjoint sets, got 1 nodes in both train and test, first node 1\. Remove"
    ):
        Split(mask(1, 1, 0), mask(0, 0, 1), mask(0, 1, 0))


@pytest.mark.parametrize(
    "val", [mask(0, 0), torch.zeros(3, dtype=torch.uint8), torch.zeros(3, 1, dtype=torch.bool)]
)
def test_masks_of_another_kind_are_refused(val):
    # Where shapes are checked, jaxtyping speaks first.
    message = r"three bool masks over the same nodes.*published_splits\(data\)|typechecking parameter 'val'"
    with pytest.raises((ValueError, TypeCheckError), match=message):
        Split(mask(1, 0, 0), val, mask(0, 1, 0))


def test_published_splits_are_the_columns():
    train, val, test = (torch.eye(4, dtype=torch.bool)[:, [i, i + 1]] for i in range(3))
    first, second = published_splits(Data(train_mask=train, val_mask=val, test_mask=test))
    assert first.train.tolist() == [True, False, False, False]
    assert second.test.tolist() == [False, False, False, True]
    (only,) = published_splits(Data(train_mask=train[:, 0], val_mask=val[:, 0], test_mask=test[:, 0]))
    assert torch.equal(only.val, first.val)


def test_no_published_splits():
    with pytest.raises(ValueError, match=r"data without val_mask, test_mask\. Use random_splits\(data.y\)"):
        published_splits(Data(train_mask=mask(1, 0)))


def test_sound_split_passes_silently():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_split(random_splits(labels(10, 10))[0], labels(10, 10))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            (mask(1, 1, 0, 0, 0), mask(0, 0, 1, 1, 0), mask(0, 0, 0, 0, 1)),
            "no test nodes of class 0: the accuracy",
        ),
        (
            (mask(1, 1, 0, 0, 0), mask(0, 0, 0, 0, 1), mask(0, 0, 1, 1, 0)),
            "no val nodes of class 0: early stopping",
        ),
        (
            (mask(1, 1, 0, 0, 0), mask(0, 0, 0, 0, 0), mask(0, 0, 1, 1, 1)),
            "no val nodes: early stopping and the choice",
        ),
        (
            (mask(1, 1, 0, 0, 0), mask(0, 0, 1, 1, 1), mask(0, 0, 0, 0, 0)),
            "no test nodes: there will be no test",
        ),
    ],
)
def test_gaps_are_warned_of_with_their_consequence(parts, message):
    with pytest.warns(UserWarning, match=message):
        check_split(Split(*parts), torch.tensor([0, 1, 0, 1, 1]))


def test_a_class_without_training_nodes_is_refused_unless_it_is_wanted_so():
    split = Split(mask(0, 1, 0, 0, 0), mask(1, 0, 0, 1, 0), mask(0, 0, 1, 0, 1))
    y = torch.tensor([0, 1, 0, 1, 1])
    with pytest.raises(ValueError, match=r"no train nodes of class 0: .* y = -1; absent_class='warn' trains"):
        check_split(split, y)
    with pytest.warns(UserWarning, match="no train nodes of class 0: nodes of it can never"):
        check_split(split, y, absent_class="warn")


def test_empty_training_set_is_refused():
    with pytest.raises(ValueError, match=r"labelled training nodes, got none\. Raise the training share"):
        check_split(Split(mask(0, 0), mask(1, 0), mask(0, 1)), torch.tensor([0, 1]))


def test_unlabelled_nodes_in_a_part_are_refused():
    with pytest.raises(
        ValueError, match=r"got 1 without a label in val, first node 1\. Remove nodes with y == -1"
    ):
        check_split(Split(mask(1, 0), mask(0, 1), mask(0, 0)), torch.tensor([0, -1]))


def test_split_of_another_graph_is_refused():
    with pytest.raises(ValueError, match=r"as many nodes as y, got 2 and y of shape \[3\]"):
        check_split(Split(mask(1, 0), mask(0, 1), mask(0, 0)), torch.tensor([0, 1, 1]))


def test_a_mask_of_one_column_belongs_to_every_split():
    """PyG's WikiCS has twenty columns for training and one for the test."""
    train, val = torch.eye(4, 2, dtype=torch.bool), torch.eye(4, 2, dtype=torch.bool).roll(2, 0)
    test = torch.zeros(4, dtype=torch.bool)
    splits = published_splits(Data(train_mask=train, val_mask=val, test_mask=test))
    assert [split.train.nonzero().tolist() for split in splits] == [[[0]], [[1]]]
    assert all(torch.equal(split.test, test) for split in splits)


def test_masks_with_columns_that_do_not_fit_are_refused():
    masks = {
        name: torch.zeros(5, count, dtype=torch.bool) for name, count in (("train_mask", 3), ("val_mask", 2))
    }
    with pytest.raises(
        ValueError, match=r"equally many columns.*'train_mask': 3, 'val_mask': 2.*Leave out the"
    ):
        published_splits(Data(**masks, test_mask=torch.zeros(5, dtype=torch.bool)))


def test_labels_of_another_shape_and_seeds_out_of_range_are_refused():
    with (
        unchecked(),
        pytest.raises(ValueError, match=r"got torch\.int64 of shape \[5, 1\]\. .* y\.view\(-1\)"),
    ):
        random_splits(torch.zeros(5, 1, dtype=torch.long))
    for seed in (-1, 2**70):
        with pytest.raises(ValueError, match=r"needs a seed from 0 to 2\^63 - 1, got"):
            random_splits(torch.zeros(5, dtype=torch.long), seed=seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cuts_are_exact_whatever_the_default_type(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        split = random_splits(torch.zeros(90, dtype=torch.long), (0.65, 0.15, 0.2))[0]  # 58.5, 72, 90
    finally:
        torch.set_default_dtype(before)
    assert [int(part.sum()) for part in split.parts().values()] == [59, 13, 18]


def test_a_class_of_many_nodes_loses_none():
    y = torch.zeros(2**24 + 1, dtype=torch.long)  # the first number that float32 does not know
    parts = random_splits(y, num_splits=1)[0].parts().values()
    assert sum(int(part.sum()) for part in parts) == y.numel()


def test_all_nodes_are_divided_at_once_where_classes_do_not_count():
    y = torch.arange(10)  # each class is too small to be divided on its own
    split = random_splits(y, per_class=False)[0]
    assert [int(part.sum()) for part in split.parts().values()] == [6, 2, 2]
    assert int(random_splits(y)[0].train.sum()) == 10
