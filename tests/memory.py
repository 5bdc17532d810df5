"""The most memory that a process of its own has had."""

import subprocess
import sys

PEAK = """
def peak():
    try:
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource, sys
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
"""
"""Defines ``peak()``, in bytes. ``ru_maxrss`` alone counts what the parent had when it forked."""


def in_a_process(script: str, *arguments: str) -> list[float]:
    """Run a script that may call ``peak()`` and return the numbers that it prints."""
    command = [sys.executable, "-c", PEAK + script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]
