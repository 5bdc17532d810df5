"""Canvas and colors of all pictures; matplotlib is imported when the first one is drawn."""

import io
from os import PathLike
from typing import Any

from geomgcn import _store

# matplotlib's classes: an extra, so their names must not cost an import.
Figure = Any
Axes = Any

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#7A5195", "#8C6D31")
"""Okabe and Ito's, told apart with any kind of color vision; purple and brown for their black and yellow."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, MUTED, FAINT = "#222222", "#6B6B6B", "#C8C8C8"
DOTS_PER_INCH = 180


def check_matplotlib() -> None:
    """Refuse to go on without matplotlib, before any work is done.

    Example:
        >>> check_matplotlib()
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Pictures need matplotlib, which is not installed. Run: pip install "geomgcn[plot]".'
        ) from error


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure, which no other part of the program knows of.

    Args:
        width, height: Of the figure, in inches.

    Example:
        >>> new_axes(4.0, 3.0).figure.get_size_inches().tolist()
        [4.0, 3.0]
    """
    check_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)  # needs no screen
    return figure.add_subplot()


def class_style(label: int) -> dict[str, Any]:
    """Return color and marker of a class: both differ from those of the classes beside it.

    The first 56 classes have a pair of their own. Unknown labels (-1) are small gray dots.

    Example:
        >>> class_style(0)
        {'color': '#0072B2', 'marker': 'o'}
    """
    if label < 0:
        return {"color": FAINT, "marker": "."}
    turn = label // len(COLORS)
    return {"color": COLORS[label % len(COLORS)], "marker": MARKERS[(label + turn) % len(MARKERS)]}


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file.

    Example:
        >>> png(new_axes(1.0, 1.0).figure)[1:4]
        b'PNG'
    """
    buffer = io.BytesIO()
    plain = {"Software": None}  # no version of matplotlib in it: equal pictures are equal files
    figure.savefig(
        buffer, format="png", facecolor="white", bbox_inches="tight", pad_inches=0.08, metadata=plain
    )
    return buffer.getvalue()


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a figure as a PNG file; after a failure the old file is still there.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "empty.png"
        >>> save(new_axes(1.0, 1.0).figure, path)
        >>> path.exists()
        True
    """
    contents = png(figure)
    _store.write_atomic(path, lambda file: file.write(contents))
