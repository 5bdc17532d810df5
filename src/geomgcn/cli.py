"""The command line: parse, call one function, and turn mistakes into one line.

Nothing heavy is imported before a command runs, so that help and wrong usage are answered at once.
"""

import os
import signal
import sys
import warnings
from types import FrameType
from typing import TextIO

import tyro

from geomgcn import __version__
from geomgcn._arguments import COMMANDS, Command
from geomgcn._names import lookup

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes after Ctrl-C and after SIGTERM, as shells have them."""

_DESCRIPTION = "Geom-GCN: geometric aggregation for graph neural networks, from a graph to labels."


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: 0, or 1 with one line that says what is wrong, or 2 for wrong usage.

    Example:
        >>> main(["--version"])
        Traceback (most recent call last):
        SystemExit: 0
    """
    own_process = args is None
    args = sys.argv[1:] if args is None else args
    if args[:1] == ["--version"]:
        print(f"geomgcn {__version__}")
        sys.exit(0)
    _check_command(args)
    command: Command = tyro.cli(
        Command,
        args=args,
        prog="geomgcn",
        description=_DESCRIPTION,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    sys.path.append(os.getcwd())  # for classes of the user's own, given as module:Class
    if own_process:
        signal.signal(signal.SIGTERM, _terminate)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        code = _guarded(command)
    if own_process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said: a second Ctrl-C changes nothing
        if signal.signal(signal.SIGTERM, signal.SIG_IGN) is signal.SIG_IGN and code == INTERRUPTED:
            code = TERMINATED
    sys.exit(code)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    """Stop as after Ctrl-C, so that what is done is kept."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning of ours as one line; those of libraries are for programmers."""
    if issubclass(category, UserWarning):
        print(f"Warning: {' '.join(str(message).split())}", file=sys.stderr)


def _check_command(args: list[str]) -> None:
    """Answer an unknown command with the nearest one."""
    if not args or args[0].startswith("-"):
        return
    try:
        lookup("command", args[0], dict.fromkeys(COMMANDS))
    except ValueError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)


def _guarded(command: Command) -> int:
    """Run a command; a mistake of the user's becomes one line on standard error."""
    try:
        from geomgcn._commands import run  # torch and PyG come with it

        return run(command)
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the flush at exit
        return 0
    except MemoryError as error:
        print(f"Error: Out of memory ({error}). Take a smaller graph or smaller settings.", file=sys.stderr)
        return 1
    except (
        ValueError,
        TypeError,
        ImportError,
        OSError,
        RuntimeError,
        ArithmeticError,
        LookupError,
    ) as error:
        print(f"Error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print(" ".join(["Interrupted.", *getattr(stop, "__notes__", [])]), file=sys.stderr)
        return INTERRUPTED
