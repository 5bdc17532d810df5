"""What the benchmarks share: one process a measurement, one thread, and the name of the machine."""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def in_a_process(script, *arguments):
    """Run ``script --measure arguments`` and return the object that its last line holds."""
    command = [sys.executable, script, "--measure", *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **THREADS}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def peak_mb():
    """Return the most memory that this process has had, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says may be what the parent had
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine(*packages):
    """Name the processor, the versions and the day."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"{model}, 1 thread, Python {platform.python_version()}, {versions}, {time.strftime('%Y-%m-%d')}"
