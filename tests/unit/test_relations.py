import math
import random
from dataclasses import dataclass

import pytest
import torch
from torch_geometric.data import Data

from geomgcn.experiments import Cell, structure_parts
from geomgcn.neighborhoods import StructuralNeighborhood, relate
from geomgcn.nn import GeomGCN
from geomgcn.relations import (
    Grid,
    PolarQuadrants,
    Quadrants,
    RelationOperator,
    Sectors,
    operator_by_name,
    operators,
)
from graphs import connected_random, unchecked


def random_ends(seed, count=400, values=None):
    """Pairs of points in the plane; on few values where ties are wanted."""
    rng = random.Random(seed)
    draw = (lambda: rng.choice(values)) if values else (lambda: rng.uniform(-1, 1))
    return [[(draw(), draw()) for _ in range(count)] for _ in range(2)]


def apply(operator, source, target):
    ends = (torch.tensor(points, dtype=torch.float64) for points in (source, target))
    return operator(*ends).tolist()


@pytest.mark.parametrize("values", [None, [-1.0, 0.0, 1.0]])
def test_quadrants_are_the_papers_table(values):
    def tau(z_v, z_u):
        if z_v[0] > z_u[0] and z_v[1] <= z_u[1]:
            return "upper left"
        if z_v[0] <= z_u[0] and z_v[1] <= z_u[1]:
            return "upper right"
        if z_v[0] > z_u[0] and z_v[1] > z_u[1]:
            return "lower left"
        return "lower right"

    source, target = random_ends(1, values=values)
    found = [Quadrants.names[r] for r in apply(Quadrants(), source, target)]
    assert found == [tau(z_v, z_u) for z_u, z_v in zip(source, target, strict=True)]
    assert Quadrants.names == ("upper left", "upper right", "lower left", "lower right")


def test_quadrants_mirror_when_seen_from_the_other_end():
    source, target = random_ends(2)
    there, back = apply(Quadrants(), source, target), apply(Quadrants(), target, source)
    assert all(a + b == 3 for a, b in zip(there, back, strict=True))


def test_polar_quadrants_by_cross_product_and_radius():
    source, target = random_ends(3)
    for found, u, v in zip(apply(PolarQuadrants(), source, target), source, target, strict=True):
        clockwise = v[0] * u[1] - v[1] * u[0] < 0
        upper = math.hypot(*v) >= math.hypot(*u)
        wanted = f"{'upper' if upper else 'lower'} {'right' if clockwise else 'left'}"
        assert PolarQuadrants.names[found] == wanted


def test_polar_quadrants_take_the_short_way_round():
    def at(degrees, radius):
        return radius * math.cos(math.radians(degrees)), radius * math.sin(math.radians(degrees))

    target = [at(179, 0.5), at(-179, 0.5), at(1, 0.5), at(-1, 0.5)]
    source = [at(-179, 0.2), at(179, 0.2), at(-1, 0.7), at(1, 0.7)]
    found = [PolarQuadrants.names[r] for r in apply(PolarQuadrants(), source, target)]
    assert found == ["upper left", "upper right", "lower right", "lower left"]


@pytest.mark.parametrize("origin", [(0.0, 0.0), (-0.0, 0.0), (0.0, -0.0), (-0.0, -0.0)])
def test_the_origin_has_angle_zero_whatever_its_sign(origin):
    above, below = (0.0, 0.5), (0.0, -0.5)
    assert apply(PolarQuadrants(), [above, below], [origin, origin]) == [2, 3]
    assert apply(PolarQuadrants(), [origin, origin], [above, below]) == [1, 0]


def test_polar_quadrants_of_equal_angle_or_radius():
    # The same place, further out on the same ray, and across the origin.
    source, target = [(0.3, 0.0), (0.6, 0.0), (-0.3, 0.0)], [(0.3, 0.0)] * 3
    found = [PolarQuadrants.names[r] for r in apply(PolarQuadrants(), source, target)]
    assert found == ["upper right", "lower right", "upper left"]


@pytest.mark.parametrize("cell", [0.0, 0.5, 1.0])
def test_grid_counts_cells_row_by_row(cell):
    values = [-1.0, -0.5, -0.25, -0.125, 0.0, 0.125, 0.25, 0.5, 1.0]
    source, target = random_ends(4, values=values)
    for found, u, v in zip(apply(Grid(cell), source, target), source, target, strict=True):
        x, y = u[0] - v[0], u[1] - v[1]
        column = 1 if abs(x) <= cell / 2 else (2 if x > 0 else 0)
        row = 1 if abs(y) <= cell / 2 else (0 if y > 0 else 2)
        assert found == 3 * row + column


def test_grid_numbers_are_the_papers_less_one():
    compass = dict(zip(Grid.names, apply(Grid(), [(-9, 9), (0, 9), (9, 9)], [(0, 0)] * 3), strict=False))
    assert compass == {"upper left": 0, "above": 1, "upper right": 2}
    assert (Grid.names[4], Grid.names[7]) == ("centre", "below")


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_sectors_count_counter_clockwise_from_the_right(count):
    source, target = random_ends(5)
    for found, u, v in zip(apply(Sectors(count), source, target), source, target, strict=True):
        degrees = math.degrees(math.atan2(u[1] - v[1], u[0] - v[0])) % 360
        assert found == int(degrees // (360 / count))


def test_sectors_own_their_first_border():
    compass = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (0.0, 0.0)]
    assert apply(Sectors(4), compass, [(0.0, 0.0)] * 5) == [0, 1, 2, 3, 0]
    assert Sectors(4).names[1] == "90 to 180 degrees"


@pytest.mark.parametrize("operator", [Quadrants(), Grid(0.0), Sectors(4)])
def test_negative_zero_is_zero(operator):
    zeros = [(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)]
    for points in ([(0.0, 0.0)], [(1.0, 0.0)], [(-1.0, 0.0)], [(0.0, 1.0)]):
        plain = apply(operator, points, [(0.0, 0.0)]) + apply(operator, [(0.0, 0.0)], points)
        signed = {tuple(apply(operator, points, [zero]) + apply(operator, [zero], points)) for zero in zeros}
        assert signed == {tuple(plain)}


@pytest.mark.parametrize("operator", [Quadrants(), PolarQuadrants(), Grid(), Sectors()])
def test_only_the_plane_has_these_relations(operator):
    name = type(operator).__name__
    message = rf"{name} needs positions in 2 dimensions, got dim=3\. Embed with dim=2, or use an operator"
    with pytest.raises(ValueError, match=message):
        operator(torch.zeros(1, 3), torch.zeros(1, 3))


@pytest.mark.parametrize("cell", [-1.0, math.nan, math.inf])
def test_grid_refuses_a_cell_that_is_none(cell):
    with pytest.raises(ValueError, match=rf"cell of zero or more, got cell={cell}\. Pass cell=1\.0"):
        Grid(cell)


def test_sectors_refuse_less_than_one():
    with pytest.raises(
        ValueError, match=r"whole number of sectors from 1 to 360, got num_relations=0\. Pass 8"
    ):
        Sectors(0)


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("quadrants", Quadrants()),
        ("PolarQuadrants", PolarQuadrants()),
        ("grid", Grid(1.0)),
        ("grid:0.25", Grid(0.25)),
        ("Sectors:6", Sectors(6)),
    ],
)
def test_operators_are_found_by_name(name, operator):
    assert operator_by_name(name) == operator


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sector", r"Unknown relation operator 'sector'\. Did you mean 'sectors'.* Known: quadrants"),
        ("quadrants:3", r"Quadrants takes no setting, got 'quadrants:3'\. Write 'quadrants'"),
        ("sectors:many", r"Cannot read the setting of 'sectors:many': invalid literal for int"),
        ("sectors:1000000000000", r"Cannot read the setting of .*from 1 to 360, got num_relations=10{12}\."),
        (
            "nowhere:Nearer",
            r"Unknown relation operator 'nowhere:Nearer': No module named 'nowhere'\. Run where",
        ),
        ("sectors:0", r"Cannot read the setting of 'sectors:0': .*whole number of sectors"),
        ("grid:-1", r"Cannot read the setting of 'grid:-1': .*zero or more"),
    ],
)
def test_bad_names_are_answered(name, message):
    with pytest.raises(ValueError, match=message):
        operator_by_name(name)


@dataclass(frozen=True)
class InnerOuter(RelationOperator):
    """Nearer than one unit, or not."""

    num_relations: int = 2

    def __call__(self, source, target):
        return (source - target).norm(dim=-1).ge(1.0).long()


@dataclass(frozen=True)
class InnerOuterAgain(InnerOuter):
    """A subclass of a subclass is an operator too."""


def test_a_users_operator_works_from_its_name_to_the_logits():
    assert operator_by_name("innerouter") == InnerOuter()
    assert operators()["innerouteragain"] is InnerOuterAgain
    torch.manual_seed(0)
    data = Data(x=torch.randn(9, 4), pos=torch.randn(9, 2), edge_index=connected_random(9, 6, seed=1))
    structure = StructuralNeighborhood(operator_by_name("innerouter"))(data)
    assert structure.num_virtual_nodes == 2 * 2 + 1
    pairs = structure.edge_index[:, structure.edge_type < 2].t().tolist()
    for (u, v), relation in zip(pairs, structure.edge_type.tolist(), strict=False):
        assert relation == int(math.dist(data.pos[u].tolist(), data.pos[v].tolist()) >= 1)
    model = GeomGCN(4, 8, 3, structure.num_virtual_nodes)
    assert model(structure.x, structure.edge_index, structure.edge_type).shape == (9, 3)
    cell = Cell("mine.npz", neighborhood="coordinates", relation="innerouter")
    parts = structure_parts(cell, data, data.edge_index, [])
    assert [part.num_relations for part in parts] == [2, 2]


@dataclass(frozen=True)
class Wrong(InnerOuter):
    """Returns what it is told to."""

    answer: str = "range"

    def __call__(self, source, target):
        ids = torch.full((len(source),), 2)
        return {"range": ids, "float": ids.double(), "shape": ids[:1]}[self.answer]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("range", r"Wrong needs relations from 0 to 1, got 2 at pair 0\. Return ids below num_relations"),
        ("float", r"Wrong needs to return one int64 id a pair, got torch.float64 .* End it with \.long\(\)"),
        ("shape", r"Wrong needs to return one int64 id a pair, got .*\[1\] for 2 pairs\. .* one entry a row"),
    ],
)
def test_an_operator_that_answers_wrongly_is_refused(answer, message):
    with pytest.raises(ValueError, match=message):
        relate(torch.tensor([[0, 1], [1, 0]]), torch.zeros(2, 2), Wrong(answer=answer))


def test_sectors_are_counted_in_whole_numbers():
    with (
        unchecked(),
        pytest.raises(ValueError, match=r"a whole number of sectors .*got num_relations=2\.5\."),
    ):
        Sectors(2.5)


def test_an_operator_is_imported_by_reference():
    assert operator_by_name("geomgcn.relations:Quadrants") == Quadrants()
