"""What every relation operator promises; each subclass is enrolled by itself."""

import pytest
import torch

from geomgcn.relations import Grid, PolarQuadrants, operators

OURS = {name: kind for name, kind in operators().items() if kind.__module__ == "geomgcn.relations"}
DEPENDS_ON_PLACE = {PolarQuadrants}  # angles and radii are about the origin
DEPENDS_ON_SCALE = {Grid}  # its cell has a width

pytestmark = pytest.mark.parametrize("operator", [kind() for kind in OURS.values()], ids=list(OURS))


def ends(count=3000, dtype=torch.float64):
    """Positions with few binary digits, so that moving and scaling them is exact."""
    generator = torch.Generator().manual_seed(0)
    source, target = torch.randint(-255, 256, (2, count, 2), generator=generator).to(dtype) / 256
    return 2 * source, target


def test_all_four_are_here(operator):
    assert len(OURS) >= 4
    assert operator == type(operator)()
    assert hash(operator) == hash(type(operator)())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_id_a_pair_each_within_range_and_reachable(operator, dtype):
    relation = operator(*ends(dtype=dtype))
    assert relation.dtype == torch.int64
    assert relation.unique().tolist() == list(range(operator.num_relations))
    assert len(operator.names) == len(set(operator.names)) == operator.num_relations


def test_no_pairs_no_relations(operator):
    assert operator(torch.zeros(0, 2), torch.zeros(0, 2)).shape == (0,)


def test_each_pair_stands_for_itself(operator):
    source, target = ends(300)
    together = operator(source, target)
    apart = [int(operator(source[i : i + 1], target[i : i + 1])) for i in range(300)]
    assert together.tolist() == apart


def test_coincident_points_all_have_one_relation(operator):
    place, _ = ends(500)
    relation = operator(place, place.clone())
    assert len(relation.unique()) == 1


def test_translation(operator):
    source, target = ends()
    shift = torch.tensor([3.0, -2.0], dtype=torch.float64)
    unchanged = torch.equal(operator(source + shift, target + shift), operator(source, target))
    assert unchanged == (type(operator) not in DEPENDS_ON_PLACE)


def test_scaling(operator):
    source, target = ends()
    same = [torch.equal(operator(source * s, target * s), operator(source, target)) for s in (0.125, 8.0)]
    assert same == [type(operator) not in DEPENDS_ON_SCALE] * 2
