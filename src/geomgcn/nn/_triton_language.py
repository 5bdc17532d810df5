"""Triton, or where it is missing something to write kernels down with, so that their modules can be read."""

from typing import Any

try:
    import triton as triton
    import triton.language as tl
except ImportError:

    class _Missing:
        """Every name of it is a decorator that changes nothing."""

        def __getattr__(self, name: str) -> Any:
            return lambda function: function

    triton = tl = _Missing()

__all__ = ["tl", "triton"]
