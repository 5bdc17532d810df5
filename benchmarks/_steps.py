"""What one process of the training benchmark measures: steps, epochs, or runs on many splits.

Seconds are of the wall clock on the CPU, and between two CUDA events around each step on a GPU.
"""

import time
from statistics import median, quantiles

import torch
from _graphs import generated, load
from _layers import GRAPHED, MAKERS, OURS, STRAIGHT, check, has_prepare
from _measure import forget_peak, now_mb, peak_mb
from torch.nn import functional as F

LEARNING_RATE, WEIGHT_DECAY = 0.05, 5e-6
WARM_UP, FEWEST, MOST = 5, 7, 500
TINY = {"n": 60, "E": 240, "R": 9, "m": 4, "features": 40, "classes": 3}
CHECKED = {"n": 2000, "E": 20000, "R": 9, "m": 16, "features": 64, "classes": 7}
COPIED = {"cpu": 2**26, "cuda": 2**28}  # float32 numbers


def task_of(job):
    """Return the graph that a job asks for, on its device."""
    if job["size"] is None:
        return load(job["path"]).to(job["device"])
    return generated(job["size"], job["device"])


def subject(method, task, seed=0):
    """Return a model on the task's device, and the function that prepares its inputs."""
    torch.manual_seed(seed)
    model, inputs_of = MAKERS[method](task)
    return model.to(task.x.device), inputs_of


def training_step(model, inputs, task, capturable=False):
    """Return a function that takes one step: zero, forward, loss of the training nodes, backward, Adam."""
    settings = {"lr": LEARNING_RATE, "weight_decay": WEIGHT_DECAY, "fused": True}
    optimizer = torch.optim.Adam(model.parameters(), **settings, capturable=capturable)
    y = task.y[task.train]
    model.train()

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*inputs)[task.train], y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def in_cuda_graph(model, inputs, task):
    """Return a function that replays a training step captured in a CUDA graph, or None where it cannot be."""
    from geomgcn.splits import Split
    from geomgcn.training import TrainConfig
    from geomgcn.training._side_by_side import Inputs, SideBySide

    if not task.x.is_cuda:
        return None
    masks = torch.zeros(3, task.num_nodes, dtype=torch.bool)
    masks[0, task.train.cpu()], masks[1, task.val.cpu()] = True, True
    split = Split(*masks)
    generator = torch.Generator().manual_seed(0)
    runs = SideBySide([model], Inputs(*inputs, task.y), [split], [TrainConfig()], [generator])
    seeds = runs.draw().to(task.x.device)
    for _ in range(WARM_UP):
        runs.train(seeds)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = runs.train(seeds)

    def step():
        seeds.copy_(runs.draw())
        graph.replay()

    step()
    before = float(loss)
    step()
    assert float(loss) != before, "replays repeat the dropout of the first"
    return step


def sync(device):
    if device == "cuda":
        torch.cuda.synchronize()


def milliseconds(function, device):
    """Return how long one call takes."""
    if device == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)
    start = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - start)


def repeated(function, job):
    """Return the median and the quartiles of calls after the first ones, as many as fit into the budget."""
    device = job["device"]
    first = [milliseconds(function, device) for _ in range(WARM_UP)]
    count = int(1e3 * job["budget"] / max(min(first), 1e-6))
    times = [milliseconds(function, device) for _ in range(min(max(count, FEWEST), MOST))]
    low, _, high = quantiles(times, n=4)
    return {"ms": median(times), "low": low, "high": high, "repeats": len(times)}


def warm_up(method, device):
    """Load and compile what a method needs, for dense features and for sparse ones."""
    for density in (1.0, 0.05):
        task = generated(TINY, device)
        task.x[torch.rand_like(task.x) > density] = 0
        model, inputs_of = subject(method, task)
        training_step(model, inputs_of(), task)()
    sync(device)


def measure_steps(job):
    """Measure a training step of each method of the job."""
    task, device = task_of(job), job["device"]
    bandwidth = copy_bandwidth(device) if job["size"] is not None else None
    found = []
    for method in job["methods"]:
        warm_up(method, device)
        try:
            record = one_step(method, task, job)
        except torch.OutOfMemoryError:
            record = {"failed": "out of memory"}
        if record is None:
            continue
        if bandwidth and "ms" in record and method in (OURS, STRAIGHT, GRAPHED):
            moved = moved_bytes(task)
            record |= {"copy_gb_s": bandwidth / 1e9, "moved_gb": moved / 1e9}
            record["share"] = moved / (1e-3 * record["ms"]) / bandwidth
        found.append({"method": method, **task.sizes(), **record})
        if device == "cuda":
            torch.cuda.empty_cache()
    return found


def one_step(method, task, job):
    """Return milliseconds and memory of one method, or None where it cannot be measured yet."""
    device = job["device"]
    start_counting(device)
    before = memory_mb(device)
    model, inputs_of = subject(method, task)
    sync(device)
    start = time.perf_counter()
    inputs = inputs_of()
    sync(device)
    prepared = 1e3 * (time.perf_counter() - start)
    if method == GRAPHED:
        step = in_cuda_graph(model, inputs, task)
        if step is None:
            return None
    else:
        step = training_step(model, inputs, task)
    loss = step()
    assert loss is None or bool(loss.isfinite()), f"{method}: the loss is {loss}"
    record = repeated(step, job)
    record |= {"prepare_ms": prepared, "before_mb": before, "peak_mb": peak_memory_mb(device)}
    return {**record, "fast_path": has_prepare()} if method == OURS else record


def start_counting(device):
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        forget_peak()


def memory_mb(device):
    return torch.cuda.memory_allocated() / 2**20 if device == "cuda" else now_mb()


def peak_memory_mb(device):
    return torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else peak_mb()


def copy_bandwidth(device):
    """Return the bytes a second, read and written, of copying one large array to another."""
    source = torch.ones(COPIED[device], device=device)
    target = torch.empty_like(source)
    times = [milliseconds(lambda: target.copy_(source), device) for _ in range(12)]
    return 2 * source.nbytes / (1e-3 * median(times[2:]))


def moved_bytes(task):
    """Return the bytes of a step in which each product reads and writes its arrays once, each pair its row.

    Two layers, forward and backward: features twice, seven passes over hidden arrays of R * m columns and
    four over output arrays of R * classes; each pair reads m numbers twice and ``classes`` numbers twice,
    and its index and weight (8 bytes) four times. Caches may do better.
    """
    size = task.sizes()
    n, pairs = size["n"], size["pairs"]
    columns = 2 * size["features"] + size["R"] * (7 * size["m"] + 4 * size["classes"]) + 2 * size["classes"]
    return 4 * (n * columns + 2 * pairs * (size["m"] + size["classes"])) + 4 * 8 * pairs


def measure_epochs(job):
    """Measure epochs of the paper's models: a training step and an evaluation on the validation nodes."""
    task, device = task_of(job), job["device"]
    found = []
    for method in job["methods"]:
        warm_up(method, device)
        model, inputs_of = subject(method, task)
        inputs = inputs_of()
        step, wanted = training_step(model, inputs, task), task.y[task.val]

        @torch.no_grad()
        def evaluate(model=model, inputs=inputs, wanted=wanted):
            model.eval()
            logits = model(*inputs)[task.val]
            result = (
                float(F.cross_entropy(logits, wanted)),
                float((logits.argmax(1) == wanted).float().mean()),
            )
            model.train()
            return result

        for _ in range(2):
            step(), evaluate()
        sync(device)
        start, done = time.perf_counter(), 0
        while done < job["epochs"] and (done < 5 or time.perf_counter() - start < job["limit"]):
            step()
            _, accuracy = evaluate()
            done += 1
        seconds = time.perf_counter() - start
        record = {"seconds": seconds, "epochs": done, "accuracy": accuracy, "fast_path": has_prepare()}
        found.append({"method": method, **task.sizes(), **record})
    return found


def many_runs(task, device, epochs):
    """Return the seconds of ten published splits in one program, and of one after another.

    THE PLACE TO FILL IN once ``geomgcn.training.fit_many`` exists. Written for
    ``fit_many(models, data, splits, configs)`` that returns a ``Fit`` for each run, or has them as ``fits``.
    """
    from torch_geometric.data import Data

    from geomgcn import training
    from geomgcn.splits import Split

    names = ("x", "y", "edge_index", "edge_type", "edge_weight")
    data = Data(**{name: getattr(task, name) for name in names})
    splits = [Split(*(mask.cpu() for mask in part)) for part in task.parts.unbind(2)]

    def configs(epochs):
        # More patience than epochs: all runs are equally long.
        common = {"max_epochs": epochs, "patience": epochs + 1, "absent_class": "warn", "device": device}
        return [training.TrainConfig(seed=i, **common) for i in range(len(splits))]

    def models():
        return [subject(OURS, task, seed=i)[0] for i in range(len(splits))]

    def single(epochs):
        rows = zip(models(), splits, configs(epochs), strict=True)
        return [training.fit(model, data, split, config) for model, split, config in rows]

    def together(epochs):
        found = training.fit_many(models(), data, splits, configs(epochs))
        return getattr(found, "fits", found)

    ways = {"single": single, **({"many": together} if hasattr(training, "fit_many") else {})}
    result = {}
    for name, way in ways.items():
        way(2)
        sync(device)
        start = time.perf_counter()
        fits = way(epochs)
        result[f"{name}_s"] = time.perf_counter() - start
        assert all(fit.epochs == epochs for fit in fits), f"{name} stopped early"
        result[f"{name}_accuracy"] = sum(fit.test_accuracy for fit in fits) / len(fits)
    return {**result, "runs": len(splits), "epochs": epochs}


def measure_many(job):
    """Measure runs on all splits of a data set."""
    task = task_of({**job, "device": "cpu"})  # training moves data and model itself
    return [{"method": OURS, **task.sizes(), **many_runs(task, job["device"], job["epochs"])}]


def measure_checks(job):
    """Assert that what is compared is the same function: on a generated graph, and on the job's."""
    check(generated(CHECKED, job["device"]))
    if job["size"] is None:
        check(task_of(job))
    return []
