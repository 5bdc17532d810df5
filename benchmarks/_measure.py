"""What the benchmarks share: one process a measurement, fixed threads, and the name of the machine."""

import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def in_a_process(script, *arguments, threads=1):
    """Run ``script --measure arguments`` and return the object that its last line holds."""
    command = [sys.executable, script, "--measure", *map(str, arguments)]
    environment = {**os.environ, **dict.fromkeys(POOLS, str(threads))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def peak_mb():
    """Return the most memory that this process has had, in MB."""
    return _status_mb("VmHWM")


def now_mb():
    """Return the memory that this process has now, in MB; the most it has had where that is unknown."""
    return _status_mb("VmRSS")


def forget_peak():
    """Let :func:`peak_mb` count from now on; without effect where Linux does not allow it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status_mb(name):
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says may be what the parent had
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields[name].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine(*packages, threads=1):
    """Name the processor, the versions and the day."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    count = "1 thread" if threads == 1 else f"{threads} threads"
    return f"{model}, {count}, Python {platform.python_version()}, {versions}, {time.strftime('%Y-%m-%d')}"
