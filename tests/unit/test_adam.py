import pytest
import torch

from geomgcn.training import _adam
from geomgcn.training._adam import Moments, adam


def gradients(steps, shape, dtype=torch.float64):
    seed = torch.seed() % 2**32
    print(f"seed {seed}")
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(shape, generator=generator, dtype=dtype)
    return start, [torch.randn(shape, generator=generator, dtype=dtype) for _ in range(steps)]


def as_torch_does(start, grads, rate, decay):
    weight = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([weight], rate, weight_decay=decay)
    for grad in grads:
        weight.grad = grad.clone()
        optimizer.step()
    return weight.detach()


def ours(start, grads, rates, decays, active=None):
    weight, moments = start.clone(), [Moments.of(start)]
    runs = len(start)
    active = torch.ones(runs, dtype=torch.bool) if active is None else active
    rate, decay = (torch.tensor(values, dtype=torch.float64) for values in (rates, decays))
    for step, grad in enumerate(grads, 1):
        adam([weight], [grad], moments, torch.tensor(step), rate, decay, active)
    return weight


@pytest.fixture(params=["compiled", "operations"])
def way(request, monkeypatch):
    if request.param == "operations":  # as on other devices
        monkeypatch.setattr(_adam, "_on_cpu", _adam._elsewhere)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 40_000)])  # the second is cut into pieces
def test_each_run_moves_as_torch_moves_it(shape, dtype):
    start, grads = gradients(5, shape, dtype)
    rates, decays = [0.05, 0.01, 0.2][: shape[0]], [5e-5, 0.0, 1e-2][: shape[0]]
    found = ours(start, grads, rates, decays)
    loose = 1e-6 if dtype == torch.float32 else 1e-13
    for run in range(shape[0]):
        expected = as_torch_does(start[run], [grad[run] for grad in grads], rates[run], decays[run])
        torch.testing.assert_close(found[run], expected, atol=loose, rtol=loose)


@pytest.mark.usefixtures("way")
def test_runs_that_have_ended_stay_where_they_are():
    start, grads = gradients(3, (2, 7))
    found = ours(start, grads, [0.1, 0.1], [0.0, 0.0], torch.tensor([False, True]))
    assert torch.equal(found[0], start[0])
    assert not torch.equal(found[1], start[1])
