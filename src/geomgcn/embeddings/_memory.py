"""A look at the free memory before a large array is taken: afterwards the system ends the process."""

from pathlib import Path


def check_memory(needed: int, num_nodes: int) -> None:
    """Refuse hop distances of ``needed`` bytes where less memory is free.

    Example:
        >>> check_memory(needed=4, num_nodes=2)
    """
    free = free_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"Exact Isomap needs the hop distances of all pairs in a component: {num_nodes} nodes take "
            f"{needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free. "
            f"Embed a part of the graph, or bring positions of your own with Coordinates(pos)."
        )


def free_memory() -> int | None:
    """Return the bytes that this process can still take, or None where the system does not tell.

    Example:
        >>> free_memory() is None or free_memory() > 0
        True
    """
    limits = []
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        if "MemAvailable" in fields:
            limits.append(int(fields["MemAvailable"].split()[0]) * 1024)
    group = Path("/sys/fs/cgroup")  # a container's limit is below the machine's
    if (group / "memory.max").exists() and (group / "memory.current").exists():
        limit = (group / "memory.max").read_text().strip()
        if limit != "max":
            limits.append(int(limit) - int((group / "memory.current").read_text()))
    return min(limits) if limits else None
