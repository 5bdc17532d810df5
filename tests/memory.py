"""The most memory of its own that a process has had."""

import subprocess
import sys

PEAK = """
def peak():
    try:
        lines = open("/proc/self/status").read().splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        most, of_files = (int(fields[name].split()[0]) * 1024 for name in ("VmHWM", "RssFile"))
        return most - of_files
    except (OSError, KeyError):
        import resource, sys
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
"""
"""Defines ``peak()``, in bytes. Pages of libraries are left out: how many count depends on what the system
has read before, 100 MB more of them right after an installation. ``ru_maxrss`` may be what the parent had."""


def in_a_process(script: str, *arguments: str) -> list[float]:
    """Run a script that may call ``peak()`` and return the numbers that it prints."""
    command = [sys.executable, "-c", PEAK + script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]
