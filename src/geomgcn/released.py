"""The neighbourhood files that the authors of Geom-GCN published, read by either set of rules.

A row ``node1,node2 <tab> space <tab> relation`` holds one ordered pair. The files exist for eight of
the paper's data sets (none for Squirrel), and call Isomap ``MDS``. Their relation ids agree with
:class:`~geomgcn.relations.Quadrants` read row by row, but for two files whose ids carry labels:
see :data:`LEAKING`.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from geomgcn._names import canonical, lookup
from geomgcn.datasets import DataError, fetch
from geomgcn.neighborhoods import RelatedPairs

_REPOSITORY = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn"
_MASTER = "master"
_BEFORE_CORNELL_WAS_CORRECTED = "f1fc0d14b3b019c562737240d06ec83b07d16a8f"
_HEADER = "node1,node2\tspace\trelation_type"
_NUM_RELATIONS = 4

SPACES = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}
"""Our name of a space and the one in the file names."""

DATASETS = {
    "cora": (_MASTER, "cora"),
    "citeseer": (_MASTER, "citeseer"),
    "pubmed": (_MASTER, "pubmed"),
    "chameleon": (_MASTER, "chameleon"),
    "actor": (_MASTER, "film"),
    "cornell": (_MASTER, "cornell"),
    "cornell-superseded": (_BEFORE_CORNELL_WAS_CORRECTED, "cornell"),
    "texas": (_MASTER, "texas"),
    "wisconsin": (_MASTER, "wisconsin"),
}
"""Data sets with published files: revision and name there."""

LEAKING = frozenset({("citeseer", "isomap"), ("pubmed", "isomap")})
"""Files whose relation ids on graph pairs are a noisy copy of 'both ends have the same label'.

Test pairs are no exception, so accuracies from these files use test labels.
"""


def released_file(dataset: str, space: str) -> str:
    """Return where a file was published, or say that it was not.

    Example:
        >>> released_file("actor", "isomap").rpartition("/")[2]
        'outf_nodes_space_relation_film_MDS.txt'
    """
    revision, name = _locate(dataset)
    file_space = lookup("space of the published neighborhoods", space, SPACES)
    file = f"structural_neighborhood/outf_nodes_space_relation_{name}_{file_space}.txt"
    return f"{_REPOSITORY}/{revision}/{file}"


def released_pairs(dataset: str, space: str, direction: str = "gather") -> tuple[RelatedPairs, RelatedPairs]:
    """Return the published graph and latent neighbourhoods of a data set in a space.

    Args:
        dataset: One of :data:`DATASETS`.
        space: One of :data:`SPACES`.
        direction: ``"gather"``: the first node of a row gathers from the second, as the paper has it.
            ``"filed"``: a message runs from the first node to the second, as in the released program. It
            matters for the Poincaré files, whose latent pairs are one-sided.

    Example:
        >>> graph, latent = released_pairs("texas", "poincare")  # doctest: +SKIP
        >>> graph.edge_index.size(1)  # doctest: +SKIP
        558
    """
    if direction not in ("gather", "filed"):
        raise ValueError(f"direction is 'gather' or 'filed', got {direction!r}.")
    url = released_file(dataset, space)
    table = parse_rows(fetch(url).decode(), url.rpartition("/")[2])
    parts = []
    for latent, part_name in ((0, "graph"), (1, "latent")):
        rows = torch.from_numpy(table[table[:, 2] == latent])
        first, second = rows[:, 0], rows[:, 1]
        ends = (second, first) if direction == "gather" else (first, second)
        parts.append(RelatedPairs(torch.stack(ends), rows[:, 3].contiguous(), _NUM_RELATIONS, part_name))
    return parts[0], parts[1]


def _locate(dataset: str) -> tuple[str, str]:
    if canonical(dataset).startswith("squirrel"):
        raise ValueError(
            "The authors published no neighborhood file for Squirrel. "
            "Use --neighborhood isomap, or another space of our own."
        )
    return lookup("data set with published neighborhoods", dataset, DATASETS)


def parse_rows(text: str, name: str) -> NDArray[np.int64]:
    """Return rows of first node, second node, 0 for graph or 1 for latent, and relation.

    Args:
        name: What to call the file in errors.

    Example:
        >>> parse_rows("node1,node2\\tspace\\trelation_type\\n4,2\\tgraph\\t3\\n", "toy.txt").tolist()
        [[4, 2, 0, 3]]
    """
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != _HEADER:
        raise DataError(
            f"{name} needs the heading {_HEADER!r}, got {(lines or [''])[0][:60]!r}. Fetch it again."
        )
    spaces = {"graph": 0, "latent_space": 1}
    table = np.empty((len(lines) - 1, 4), dtype=np.int64)
    for i, line in enumerate(lines[1:]):
        try:
            pair, space, relation = line.split("\t")
            first, second = pair.split(",")
            table[i] = int(first), int(second), spaces[space], int(relation)
        except (ValueError, KeyError):
            raise DataError(
                f"{name}, line {i + 2}: expected 'node1,node2<tab>graph or latent_space<tab>relation', "
                f"got {line[:60]!r}. Fetch it again."
            ) from None
    return table
