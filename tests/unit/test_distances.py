import cmath
import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geomgcn.distances import Euclidean, Geodesic, Tangent, distance_by_name
from geomgcn.neighborhoods import Space

INSIDE = st.tuples(st.floats(0, 0.999), st.floats(0, 6.28)).map(lambda p: cmath.rect(*p))


def row(*points):
    return torch.tensor([[z.real, z.imag] for z in points], dtype=torch.float64)


def between(distance, u, v):
    return float(distance(row(u), row(v)))


@settings(max_examples=100, deadline=None)
@given(u=INSIDE, v=INSIDE)
def test_formulas_by_other_ways(u, v):
    # The geodesic by the Moebius difference, in complex numbers.
    moebius = abs((u - v) / (1 - v.conjugate() * u))
    assert between(Geodesic(), u, v) == pytest.approx(2 * math.atanh(moebius), rel=1e-6, abs=1e-9)
    assert between(Euclidean(), u, v) == pytest.approx(abs(u - v), abs=1e-12)
    assert between(Tangent(), u, v) == pytest.approx(2 * abs(u - v) / (1 - abs(v) ** 2), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(u=INSIDE, v=INSIDE, w=INSIDE)
def test_symmetry_and_triangle(u, v, w):
    for distance in (Euclidean(), Geodesic()):
        assert distance.symmetric
        assert between(distance, u, v) == between(distance, v, u)
        assert between(distance, u, w) <= between(distance, u, v) + between(distance, v, w) + 1e-9
        assert between(distance, u, u) == 0
    assert not Tangent().symmetric


def test_tangent_is_the_geodesic_nearby_and_not_symmetric():
    u, v = 0.8 + 0j, 0.8001 + 0j
    assert between(Tangent(), u, v) == pytest.approx(between(Geodesic(), u, v), rel=1e-3)
    assert between(Tangent(), 0.9 + 0j, 0j) < between(Tangent(), 0j, 0.9 + 0j)


@pytest.mark.parametrize("distance", [Euclidean(), Geodesic(), Tangent()])
@pytest.mark.parametrize("radius", [1e-6, 0.3, 2.0, 8.0])
@pytest.mark.parametrize("rim", [0.5, 1e-3, 1e-6])
def test_balls_hold_exactly_what_is_within_the_radius(distance, radius, rim):
    """Points just inside and just outside the Euclidean ball are so by the distance itself."""
    rng = random.Random(1)
    target = row(*(cmath.rect(1 - rim * rng.uniform(1, 1.9), rng.uniform(0, 6.28)) for _ in range(50)))
    centre, reach = distance.balls(target, radius)
    for step, within in ((1 - 1e-3, True), (1 + 1e-3, False)):
        angle = torch.rand(50, dtype=torch.float64) * 2 * math.pi
        on_sphere = centre + step * reach[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)
        if isinstance(distance, Geodesic | Tangent):
            inside_disc = on_sphere.norm(dim=1) < 1
            on_sphere, kept = on_sphere[inside_disc], target[inside_disc]
        else:
            kept = target
        found = distance(on_sphere, kept)
        assert ((found < radius) == within).all()


def test_geodesic_balls_stay_in_the_disc_however_deep():
    target = row(0j, 0.5 + 0j, 1 - 1e-9 + 0j, complex(math.nextafter(1, 0), 0))
    for radius in (1.0, 40.0, 1e6):
        centre, reach = Geodesic().balls(target, radius)
        assert centre.isfinite().all()
        assert (centre.norm(dim=1) + reach <= 1 + 1e-15).all()


@pytest.mark.parametrize("distance", [Geodesic(), Tangent()])
def test_positions_on_the_rim_are_refused(distance):
    message = r"inside the unit ball, got norm 1\.5 at row 1\. Scale the positions, or use the Euclidean"
    with pytest.raises(ValueError, match=message):
        distance(row(0j, 0j), row(0j, 1.5 + 0j))


@pytest.mark.parametrize("value", [1e-15, 1e-9, 1e-3, 0.999])
@pytest.mark.parametrize("distance", [Euclidean(), Geodesic(), Tangent()])
def test_gradients_are_finite_from_tiny_to_the_rim(distance, value):
    source = row(complex(value, 0)).requires_grad_()
    distance(source, row(0j)).sum().backward()
    assert source.grad.isfinite().all()
    assert source.grad[0, 0] > 0


@pytest.mark.parametrize("distance", [Euclidean(), Geodesic(), Tangent()])
def test_a_pair_is_as_far_apart_alone_as_among_others(distance):
    """Equal distances must come out equal bit by bit, wherever in a block they are computed."""
    generator = torch.Generator().manual_seed(0)
    source, target = torch.rand(2, 1001, 2, dtype=torch.float64, generator=generator) * 0.7
    together = distance(source, target)
    apart = torch.cat([distance(source[i : i + 1], target[i : i + 1]) for i in range(1001)])
    assert torch.equal(together, apart)
    assert not distance.symmetric or torch.equal(together, distance(target, source))


def test_names():
    assert distance_by_name("Tangent") == Tangent()
    with pytest.raises(ValueError, match=r"Unknown distance 'geodesy'\. Did you mean 'geodesic'"):
        distance_by_name("geodesy")


def test_a_space_knows_the_papers_distance():
    assert Space(torch.zeros(1, 2)).resolved_distance == Euclidean()
    assert Space(torch.zeros(1, 2), "poincare").resolved_distance == Tangent()
    assert Space(torch.zeros(1, 2), "poincare", distance=Geodesic()).resolved_distance == Geodesic()
