"""GeomConv against the double loop of the paper (Section 2.2), in plain Python."""

import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geomgcn.nn import GeomConv

LOW = ["sum", "weighted sum", "mean", "max", "energy"]


def low_level(name, carried, weights):
    """p: one value a channel, from the features and weights of the members of a virtual node."""
    channels = range(len(carried[0]))
    columns = [[h[c] for h in carried] for c in channels]
    if name in ("sum", "weighted sum"):
        return [sum(w * value for w, value in zip(weights, column, strict=True)) for column in columns]
    if name == "mean":
        return [sum(column) / len(column) for column in columns]
    if name == "max":
        return [max(column) for column in columns]
    return [math.sqrt(sum(value * value for value in column)) for column in columns]


def double_loop(conv, low, x, pairs, types, weights):
    """For each node, each virtual node: p over its members, then its map; then q."""
    num_nodes, channels, width = len(x), conv.in_channels, conv.out_channels
    in_degree = [sum(target == v for _, target in pairs) for v in range(num_nodes)]
    maps = conv.weight.transpose(0, 1).tolist()
    rows = []
    for v in range(num_nodes):
        blocks = []
        for k in range(conv.num_virtual_nodes):
            member = [e for e, (_, target) in enumerate(pairs) if target == v and types[e] == k]
            aggregate = [0.0] * channels
            if member:
                sources = [pairs[e][0] for e in member]
                if low == "weighted sum":
                    factor = [weights[e] for e in member]
                else:
                    # A source that receives nothing has no degree to divide by.
                    factor = [(in_degree[u] * in_degree[v]) ** -0.5 if in_degree[u] else 0.0 for u in sources]
                aggregate = low_level(low, [x[u] for u in sources], factor)
            blocks.append([sum(aggregate[c] * maps[k][c][o] for c in range(channels)) for o in range(width)])
        if conv.high_level == "cat":
            row = [value for block in blocks for value in block]
        else:
            row = [sum(block[o] for block in blocks) / len(blocks) for o in range(width)]
        if conv.bias is not None:
            row = [value + b for value, b in zip(row, conv.bias.tolist(), strict=True)]
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


@st.composite
def problems(draw):
    rng = random.Random(draw(st.integers(0, 2**32)))
    num_nodes, count = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    num_pairs = draw(st.integers(0, 25))
    hub = draw(st.booleans())
    pairs = [
        (rng.randrange(num_nodes), 0 if hub and rng.random() < 0.7 else rng.randrange(num_nodes))
        for _ in range(num_pairs)
    ]
    types = [rng.randrange(count) for _ in pairs]
    x = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(num_nodes)]
    weights = [rng.uniform(-2, 2) for _ in pairs]
    return count, x, pairs, types, weights


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("high", ["cat", "mean"])
@pytest.mark.parametrize("low", LOW)
@settings(max_examples=20, deadline=None)
@given(problem=problems())
def test_layer_equals_the_double_loop(low, high, bias, problem):
    count, x, pairs, types, weights = problem
    conv = GeomConv(3, 2, count, low.removeprefix("weighted "), high, bias=bias).double()
    if bias:
        torch.nn.init.normal_(conv.bias)
    edge_index = torch.tensor(pairs, dtype=torch.long).view(-1, 2).t()
    given_weights = torch.tensor(weights, dtype=torch.float64) if low == "weighted sum" else None
    out = conv(torch.tensor(x, dtype=torch.float64), edge_index, torch.tensor(types).long(), given_weights)
    expected = double_loop(conv, low, x, pairs, types, weights)
    torch.testing.assert_close(out.detach(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("low", ["mean", "max", "energy"])
def test_only_the_sum_takes_weights(low):
    conv = GeomConv(2, 2, 1, low)
    x, pairs, types = torch.randn(3, 2), torch.tensor([[0, 1], [2, 2]]), torch.tensor([0, 0])
    weighted = conv(x, pairs, types, torch.tensor([5.0, -3.0]))
    torch.testing.assert_close(weighted, conv(x, pairs, types), rtol=0, atol=0)
