"""The models of the training benchmark: two layers each, made for a task, and called alike.

A maker returns a model and a function that prepares, once for all epochs, what the model is called with.
No model has a bias, as in the paper. Peers get what helps them: the normalization of GCNConv is cached, the
pairs of the port are divided by relation beforehand.
"""

import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv, RGCNConv

from geomgcn.nn import GAT, GeomGCN

HEADS = 8


class TwoLayers(nn.Module):
    """Two layers with dropout on the input of both."""

    def __init__(self, first, second, activation=F.relu, dropout=0.5):
        super().__init__()
        self.first, self.second, self.activation, self.dropout = first, second, activation, dropout

    def forward(self, x, *edges):
        h = self.first(F.dropout(x, self.dropout, self.training), *edges)
        h = F.dropout(self.activation(h), self.dropout, self.training)
        return self.second(h, *edges)


class PerRelation(nn.Module):
    """A layer as the released program has it: a linear map and a sum over the pairs of each relation.

    With e_k = sum of w_uv h_u over the pairs of virtual node k, the output is the concatenation of W_k e_k,
    or their mean. The map comes before the sum.
    """

    def __init__(self, in_channels, out_channels, num_virtual_nodes, high_level):
        super().__init__()
        self.out_channels, self.high_level = out_channels, high_level
        self.maps = nn.ModuleList(
            nn.Linear(in_channels, out_channels, bias=False) for _ in range(num_virtual_nodes)
        )

    def forward(self, x, relations):
        parts = []
        for linear, (source, target, weight) in zip(self.maps, relations, strict=True):
            messages = weight.unsqueeze(1) * linear(x)[source]
            parts.append(x.new_zeros(x.size(0), self.out_channels).index_add(0, target, messages))
        return torch.cat(parts, 1) if self.high_level == "cat" else torch.stack(parts).mean(0)


def by_relation(task):
    """Return sources, targets and weights of the pairs of each virtual node."""
    found = []
    for k in range(task.num_virtual_nodes):
        chosen = (task.edge_type == k).nonzero().view(-1)
        source, target = task.edge_index[:, chosen]
        found.append((source, target, task.edge_weight[chosen]))
    return found


def make_ours(task):
    model = GeomGCN(task.x.size(1), task.width, task.num_classes, task.num_virtual_nodes)
    arguments = (task.x, task.edge_index, task.edge_type, task.edge_weight)
    if not has_prepare():
        return model, lambda: arguments
    return model, lambda: model.prepare(*arguments)


def has_prepare():
    """Return whether this version of the library has the fast path."""
    return hasattr(GeomGCN, "prepare")


def make_straight(task):
    model = GeomGCN(task.x.size(1), task.width, task.num_classes, task.num_virtual_nodes)
    return model, lambda: (task.x, task.edge_index, task.edge_type, task.edge_weight)


def make_port(task):
    count, width = task.num_virtual_nodes, task.width
    model = TwoLayers(
        PerRelation(task.x.size(1), width, count, "cat"),
        PerRelation(width * count, task.num_classes, count, "mean"),
    )
    return model, lambda: (task.x, by_relation(task))


def _gcn(task, width):
    return TwoLayers(
        GCNConv(task.x.size(1), width, cached=True, bias=False),
        GCNConv(width, task.num_classes, cached=True, bias=False),
    )


def _wide(task):
    """As wide as all virtual nodes but the node itself: 8 m with the paper's relations."""
    return (task.num_virtual_nodes - 1) * task.width


def make_gcn(task):
    return _gcn(task, task.width), lambda: (task.x, task.graph_edges)


def make_wide_gcn(task):
    return _gcn(task, _wide(task)), lambda: (task.x, task.graph_edges)


def make_csr_gcn(task):
    return _gcn(task, task.width), lambda: (task.x, _csr(task))


def make_wide_csr_gcn(task):
    return _gcn(task, _wide(task)), lambda: (task.x, _csr(task))


def _csr(task):
    """Return the transposed adjacency matrix, which PyG's layers take in place of edges."""
    source, target = task.graph_edges
    order = (target * task.num_nodes + source).argsort()
    start = torch.zeros(task.num_nodes + 1, dtype=torch.long, device=source.device)
    torch.cumsum(torch.bincount(target, minlength=task.num_nodes), 0, out=start[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its sparse tensors a beta
        ones = torch.ones(len(order), device=source.device)
        return torch.sparse_csr_tensor(start, source[order], ones, (task.num_nodes, task.num_nodes))


def make_gat(task):
    first = GATConv(task.x.size(1), task.width, HEADS, bias=False)
    second = GATConv(HEADS * task.width, task.num_classes, task.widths[2], concat=False, bias=False)
    return TwoLayers(first, second, F.elu), lambda: (task.x, task.graph_edges)


def make_rgcn(task):
    count = task.num_virtual_nodes
    settings = {"num_relations": count, "root_weight": False, "bias": False}  # self-loops are a relation
    model = TwoLayers(
        RGCNConv(task.x.size(1), task.width, **settings), RGCNConv(task.width, task.num_classes, **settings)
    )
    return model, lambda: (task.x, task.edge_index, task.edge_type)


def make_paper_gcn(task):
    """GCN as wide as the paper has it."""
    return _gcn(task, task.widths[0]), lambda: (task.x, task.graph_edges)


def make_paper_gat(task):
    """GAT with the paper's widths and heads, and dropout of attention."""
    _, width, out_heads = task.widths
    model = GAT(task.x.size(1), width, task.num_classes, heads=HEADS, out_heads=out_heads)
    return model, lambda: (task.x, task.graph_edges)


OURS, STRAIGHT, PORT = "Geom-GCN", "Geom-GCN, raw edges", "port"
GRAPHED = "Geom-GCN, CUDA graph"
GCN, WIDE_GCN = "GCNConv(m)", "GCNConv(8m)"
CSR_GCN, WIDE_CSR_GCN = f"{GCN}, CSR", f"{WIDE_GCN}, CSR"
STEPS = {
    OURS: make_ours,
    STRAIGHT: make_straight,
    GCN: make_gcn,
    CSR_GCN: make_csr_gcn,
    WIDE_GCN: make_wide_gcn,
    WIDE_CSR_GCN: make_wide_csr_gcn,
    "GATConv(8 x m)": make_gat,
    "RGCNConv(m)": make_rgcn,
    PORT: make_port,
}
EPOCHS = {"GCN": make_paper_gcn, "GAT": make_paper_gat, OURS: make_ours, PORT: make_port}
MAKERS = {**STEPS, **EPOCHS, GRAPHED: make_ours}


def check(task):
    """Assert that ours, straight and the port are one function with one gradient, and that peers fit."""
    torch.manual_seed(0)
    straight, inputs_of = make_straight(task)
    port, port_inputs = make_port(task)
    copy_weights(straight, port)
    ours, our_inputs = make_ours(task)
    ours.load_state_dict(straight.state_dict())
    probe = torch.randn(task.num_nodes, task.num_classes, device=task.x.device)
    wanted, gradients = evaluated(straight, inputs_of(), probe)
    for name, model, inputs in ((PORT, port, port_inputs()), (OURS, ours, our_inputs())):
        found, grads = evaluated(model, inputs, probe)
        close(found, wanted, f"{name}: outputs")
        for (layer, parameter), other in zip(gradients.items(), _stacked(grads).values(), strict=True):
            close(other, parameter, f"{name}: gradient of {layer}")
    for name, make in STEPS.items():
        model, inputs = _fresh(make, task)
        shape = model(*inputs()).shape
        assert shape == (task.num_nodes, task.num_classes), f"{name} returns shape {list(shape)}"


def _fresh(make, task):
    model, inputs = make(task)
    return model.to(task.x.device), inputs


def copy_weights(ours, port):
    """Give the port the weights of :class:`~geomgcn.nn.GeomGCN`."""
    with torch.no_grad():
        for conv, layer in zip(ours.convs, (port.first, port.second), strict=True):
            for linear, weight in zip(layer.maps, conv.weight.unbind(1), strict=True):
                linear.weight.copy_(weight.t())


def evaluated(model, inputs, probe):
    """Return the outputs in evaluation, and the gradients of their product with ``probe``."""
    model.to(probe.device).eval()
    out = model(*inputs)
    (out * probe).sum().backward()
    return out.detach(), {name: parameter.grad for name, parameter in model.named_parameters()}


def _stacked(gradients):
    """Return gradients in the form of GeomGCN: those of the port's maps side by side."""
    found = {}
    for name, gradient in gradients.items():
        layer, is_map, _ = name.partition(".maps.")
        if is_map:
            found.setdefault(layer, []).append(gradient.t())
        else:
            found[name] = gradient
    return {name: torch.stack(each, 1) if isinstance(each, list) else each for name, each in found.items()}


def close(found, wanted, what):
    """Assert that two tensors differ by rounding only, relative to the largest entry."""
    assert found.shape == wanted.shape, f"{what}: shape {list(found.shape)}, not {list(wanted.shape)}"
    worst, scale = float((found - wanted).abs().max()), float(wanted.abs().max())
    assert worst <= 1e-4 * scale, f"{what} differ by {worst:.1e} where the largest is {scale:.1e}"
