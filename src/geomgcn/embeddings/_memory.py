"""A look at the free memory before a large array is taken: afterwards the system ends the process."""

from pathlib import Path

MOST_KEPT = 2**33
"""Bytes of distances that are kept at most: those of 130,000 nodes."""


def check_memory(needed: int, num_nodes: int) -> None:
    """Refuse hop distances of ``needed`` bytes where less memory is free.

    Example:
        >>> check_memory(needed=4, num_nodes=2)
    """
    free = free_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"All hop distances of {num_nodes} nodes take {needed / 2**30:.1f} GiB, and "
            f"{free / 2**30:.1f} GiB are free. Take a part of the graph; "
            f"Isomap itself embeds the whole of it all the same, block by block."
        )


def room_for_distances() -> int:
    """Return how many bytes of distances to keep: half of what is free, and no more than ``MOST_KEPT``.

    Example:
        >>> 0 <= room_for_distances() <= MOST_KEPT
        True
    """
    free = free_memory()
    return MOST_KEPT // 4 if free is None else min(MOST_KEPT, max(free // 2, 0))


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
