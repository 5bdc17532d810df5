"""The products of a layer with their gradients, on whatever the tensors are on."""

from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from geomgcn._types import EdgeWeight
from geomgcn.nn import _cpu_products, _plain, _triton
from geomgcn.nn._adjacency import Adjacency
from geomgcn.nn._dropout import Dropout
from geomgcn.nn._features import SparseFeatures
from geomgcn.nn._plain import Finish

Values = Float[Tensor, "num_runs _ channels"]


def products_for(values: Tensor) -> ModuleType:
    """Return the module with the fastest products for a tensor.

    Example:
        >>> products_for(torch.ones(1)).__name__
        'geomgcn.nn._cpu_products'
        >>> products_for(torch.ones(1, dtype=torch.bfloat16)).__name__
        'geomgcn.nn._plain'
    """
    if values.device.type == "cpu" and values.dtype in (torch.float32, torch.float64):
        return _cpu_products
    if values.is_cuda and _triton.available():
        return _triton
    return _plain


def aggregate(
    values: Values,
    adjacency: Adjacency,
    *,
    from_slots: bool,
    to_slots: bool,
    scale: float = 1.0,
    edge_weight: EdgeWeight | None = None,
    finish: Finish | None = None,
) -> Values:
    """Return what each node, or each of its virtual nodes, gathers: one sparse product.

    Args:
        from_slots: Whether ``values`` has a row for each virtual node of a node, or one for each node.
        to_slots: Whether the result has.
        edge_weight: In place of the weights of ``adjacency``; gradients reach it.
        finish: What comes after, in the same pass.

    Example:
        >>> adjacency = Adjacency.of(torch.tensor([[1], [0]]), torch.tensor([0]), 2, 1).plain
        >>> aggregate(torch.tensor([[[1.0], [5.0]]]), adjacency, from_slots=True, to_slots=True)
        tensor([[[5.],
                 [0.]]])
    """
    bias = None if finish is None else finish.bias
    weight = None
    if edge_weight is not None:
        weight = edge_weight[adjacency.gather.order]
        adjacency = adjacency.weighted(edge_weight.detach())
    form = (from_slots, to_slots, scale)
    found: Tensor = _Aggregate.apply(values, weight, bias, adjacency, form, finish)
    return found


class _Aggregate(Function):
    """A product with the pairs; its gradient is one with the pairs the other way round."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        adjacency: Adjacency,
        form: tuple[bool, bool, float],
        finish: Finish | None,
    ) -> Tensor:
        from_slots, to_slots, scale = form
        out: Tensor = products_for(values).gather(
            adjacency.gather,
            values,
            from_slots=from_slots,
            to_slots=to_slots,
            scale=scale,
            finish=finish,
        )
        ctx.adjacency, ctx.form, ctx.finish = adjacency, form, finish
        needed = values if weight is not None and weight.requires_grad else None
        ctx.save_for_backward(out if finish is not None else None, needed)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (out, values), (from_slots, to_slots, scale) = ctx.saved_tensors, ctx.form
        dropout = None if ctx.finish is None else ctx.finish.dropout
        factor = None if dropout is None else dropout.factor
        products = products_for(grad)
        grads: list[Tensor | None] = [None, None, None]
        if ctx.needs_input_grad[0]:
            grads[0] = products.gather(
                ctx.adjacency.spread,
                grad,
                from_slots=to_slots,
                to_slots=from_slots,
                gate=out,
                scale=scale,
                factor=factor,
            )
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            passed = grad if out is None else grad * (out > 0)
            passed = passed if factor is None else passed * factor.to(grad.dtype).view(-1, 1, 1)
            if ctx.needs_input_grad[1]:
                grads[1] = products.pair_products(
                    ctx.adjacency.gather,
                    values,
                    passed,
                    from_slots=from_slots,
                    to_slots=to_slots,
                    scale=scale,
                )
            if ctx.needs_input_grad[2]:
                grads[2] = sum_over_nodes(passed.view(len(passed), ctx.adjacency.num_nodes, -1))
        return *grads, None, None, None


def largest(values: Values, adjacency: Adjacency) -> Values:
    """Return the largest value that the pairs of each virtual node read; empty ones are zero.

    Where several tie, they share the gradient evenly.

    Example:
        >>> adjacency = Adjacency.of(torch.tensor([[0, 1], [0, 0]]), torch.tensor([0, 0]), 2, 1)
        >>> largest(torch.tensor([[[1.0], [5.0]]]), adjacency)
        tensor([[[5.],
                 [0.]]])
    """
    found: Tensor = _Largest.apply(values, adjacency)
    return found


class _Largest(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, adjacency: Adjacency) -> Tensor:
        out, ties = products_for(values).largest(adjacency.gather, values)
        ctx.adjacency = adjacency
        ctx.save_for_backward(values, out, ties)
        top: Tensor = out
        return top

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values, out, ties = ctx.saved_tensors
        share = grad / ties.clamp(min=1)
        return products_for(grad).from_largest(ctx.adjacency.spread, values, out, share), None


def drop(x: Values, dropout: Dropout) -> Values:
    """Return ``x`` with entries dropped, for each run by its own seed; rows are nodes.

    Example:
        >>> drop(torch.ones(1, 1, 2), Dropout.of(torch.tensor([0]), [0.0]))
        tensor([[[1., 1.]]])
    """
    found: Tensor = _Drop.apply(x, dropout)
    return found


class _Drop(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropout: Dropout) -> Tensor:
        ctx.dropout = dropout
        out: Tensor = products_for(x).drop(x, dropout)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return products_for(grad).drop(grad, ctx.dropout), None


def multiply(
    features: SparseFeatures, weight: Float[Tensor, "num_runs channels width"], dropout: Dropout | None
) -> Float[Tensor, "num_runs num_nodes width"]:
    """Return sparse features, some of them dropped, times weights.

    Example:
        >>> multiply(SparseFeatures.of(torch.eye(2)), torch.tensor([[[1.0], [2.0]]]), None)
        tensor([[[1.],
                 [2.]]])
    """
    found: Tensor = _Multiply.apply(features, weight, dropout)
    return found


class _Multiply(Function):
    @staticmethod
    def forward(ctx: Any, features: SparseFeatures, weight: Tensor, dropout: Dropout | None) -> Tensor:
        ctx.features, ctx.dropout = features, dropout
        rows = features.by_node
        out: Tensor = products_for(weight).sparse_product(
            rows.start, rows.column, rows.value, weight, dropout
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows = ctx.features.by_channel
        found = products_for(grad).sparse_product(
            rows.start, rows.column, rows.value, grad, ctx.dropout, transposed=True
        )
        return None, found, None


def sum_over_nodes(values: Values) -> Float[Tensor, "num_runs channels"]:
    """Return the sum over all nodes; on the CPU one run after another, as in :func:`matmul`.

    Example:
        >>> sum_over_nodes(torch.ones(1, 3, 2))
        tensor([[3., 3.]])
    """
    if values.device.type == "cpu":
        return torch.stack([one.sum(0) for one in values])
    return values.sum(1)


def matmul(
    x: Float[Tensor, "num_runs *rows channels"], weight: Float[Tensor, "num_runs *more width"]
) -> Float[Tensor, "num_runs *rows width"]:
    """Return the product of each run's features with its weights.

    On the CPU one run after another, so that a run comes to the same bytes alone and among others.

    Example:
        >>> matmul(torch.ones(2, 1, 3), torch.ones(2, 3, 1)).view(-1)
        tensor([3., 3.])
    """
    if len(x) == 1:
        return (x[0] @ weight[0]).unsqueeze(0)
    if x.device.type == "cpu":
        return torch.stack([one @ maps for one, maps in zip(x, weight, strict=True)])
    return x @ weight
