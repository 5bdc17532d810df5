"""Every data set by name: its loader, the facts it must meet, where it comes from."""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike

from torch_geometric.data import Data

from geomgcn.datasets._loaders import (
    BEFORE_2022,
    embedded,
    geom_gcn,
    heterophilous,
    karate,
    planetoid,
    struc2vec,
)


@dataclass(frozen=True)
class Facts:
    """What a graph measures, and what its source says it must; None is not asked for.

    Args:
        num_edges: Ordered pairs of ``edge_index``.
        num_file_edges: Edges as the raw file counts them, self-loops and repeated ones included:
            lines, or half the entries of Planetoid's lists of neighbors.
        num_classes: Distinct labels.
        homophily: The paper's beta to three decimals.
        num_components: Of the canonical graph, isolated nodes included.
        num_isolated: Nodes of the canonical graph without a neighbor.
    """

    num_nodes: int | None = None
    num_edges: int | None = None
    num_file_edges: int | None = None
    num_features: int | None = None
    num_classes: int | None = None
    homophily: float | None = None
    num_components: int | None = None
    num_isolated: int | None = None


@dataclass(frozen=True)
class Source:
    """Where a data set comes from, and what it must be.

    A data set of your own is one line: ``SOURCES["mine"] = Source(my_loader, Facts(num_nodes=7))``.

    Args:
        read: Takes the folder of raw files (or None for the cache) and returns the graph.
        facts: What :func:`load` checks.
        license: As far as the publisher states one.
        citation: What the publishers ask to cite.
        note: What to know about the files, and why they differ from the paper's table.

    Example:
        >>> SOURCES["texas"].facts.num_nodes
        183
    """

    read: Callable[[str | PathLike[str] | None], Data]
    facts: Facts = Facts()
    license: str = ""
    citation: str = ""
    note: str = ""


PLANETOID_LICENSE = "MIT (Planetoid); splits: see the WebKB graphs."
GEOM_GCN_LICENSE = "None stated for the data; the authors' source files carry an MIT header."
YANDEX_LICENSE = STRUC2VEC_LICENSE = "MIT"

GEOM_GCN = "Pei et al., Geom-GCN: geometric graph convolutional networks, ICLR 2020"
PLANETOID = "Yang et al., Revisiting semi-supervised learning with graph embeddings, ICML 2016"
LINQS = f"Sen et al., Collective classification in network data, AI Magazine 29, 2008; {PLANETOID}"
NAMATA = f"Namata et al., Query-driven active surveying for collective classification, MLG 2012; {PLANETOID}"
MUSAE = f"Rozemberczki et al., Multi-scale attributed node embedding, J. Complex Networks 9, 2021; {GEOM_GCN}"
TANG = f"Tang et al., Social influence analysis in large-scale networks, KDD 2009; {GEOM_GCN}"
WEBKB = (
    f"Craven et al., Learning to extract symbolic knowledge from the World Wide Web, AAAI 1998; {GEOM_GCN}"
)
PLATONOV = "Platonov et al., A critical look at the evaluation of GNNs under heterophily, ICLR 2023"
RIBEIRO = "Ribeiro et al., struc2vec: learning node representations from structural identity, KDD 2017"

NO_FEATURES = "No features in the files: x is the identity. Undirected, each edge on one line."

SOURCES: dict[str, Source] = {
    "cora": Source(
        planetoid("cora"),
        Facts(2708, 10556, 5429, 1433, 7, 0.825, 78, 0),
        PLANETOID_LICENSE,
        LINQS,
        "Edges: half the entries of the lists of neighbors, repeated ones included; 5278 distinct. "
        "The published splits cover the largest component only (2485 nodes).",
    ),
    "citeseer": Source(
        planetoid("citeseer"),
        Facts(3327, 9104, 4732, 3703, 6, 0.706, 438, 48),
        PLANETOID_LICENSE,
        LINQS,
        "Edges: half the entries of the lists of neighbors, self-loops and repeated ones included; "
        "4552 distinct without self-loops. 15 nodes have neither features nor label in the files: features 0 "
        "and label 0, as in PyG.",
    ),
    "pubmed": Source(
        planetoid("pubmed"),
        Facts(19717, 88648, 44338, 500, 3, 0.792, 1, 0),
        PLANETOID_LICENSE,
        NAMATA,
        "Edges: half the entries of the lists of neighbors, self-loops and repeated ones included; "
        "44324 distinct without self-loops.",
    ),
    "chameleon": Source(
        geom_gcn("chameleon", BEFORE_2022, splits=BEFORE_2022),
        Facts(2277, 36101, 36101, 2325, 5, 0.247, 1, 0),
        GEOM_GCN_LICENSE,
        MUSAE,
        "Edges: directed links, 50 self-loops among them; 31371 undirected without self-loops. "
        "Many nodes are duplicates of others (same neighbors and label): see chameleon-filtered.",
    ),
    "squirrel": Source(
        geom_gcn("squirrel", BEFORE_2022, splits=BEFORE_2022),
        Facts(5201, 217073, 217073, 2089, 5, 0.217, 1, 0),
        GEOM_GCN_LICENSE,
        MUSAE,
        "Edges: directed links, 140 self-loops among them; 198353 undirected without self-loops. "
        "Many nodes are duplicates of others (same neighbors and label): see squirrel-filtered.",
    ),
    "actor": Source(
        geom_gcn("film", indexed=True),
        Facts(7600, 30019, 33391, 932, 5, 0.220, 1, 0),
        GEOM_GCN_LICENSE,
        TANG,
        "Edges: the released file has 33391 lines, not 33544, with 122 self-loops and repeated ones; 26659 "
        "undirected edges remain. Features: the file's heading says 931, which is its largest index, but "
        "indices start at 0 and all 932 occur. Homophily: the released edges give .22 to .225 in either "
        "direction or both, with or without self-loops and repeated ones, when nodes without neighbors are "
        "left out, and less when they count as 0; the paper's .24 and 33544 are not explained by this file.",
    ),
    "cornell": Source(
        geom_gcn("cornell"),
        Facts(183, 298, 298, 1703, 5, 0.111, 1, 0),
        GEOM_GCN_LICENSE,
        WEBKB,
        "Edges: the paper's count leaves out the file's 3 self-loops. Corrected by the authors in July 2022; "
        "the paper's accuracies come from cornell-superseded.",
    ),
    "texas": Source(
        geom_gcn("texas"),
        Facts(183, 325, 325, 1703, 5, 0.057, 1, 0),
        GEOM_GCN_LICENSE,
        WEBKB,
        "Edges: the paper's count leaves out the file's 16 self-loops. One class has a single node.",
    ),
    "wisconsin": Source(
        geom_gcn("wisconsin"),
        Facts(251, 515, 515, 1703, 5, 0.155, 1, 0),
        GEOM_GCN_LICENSE,
        WEBKB,
        "Edges: the paper's count leaves out the file's 16 self-loops.",
    ),
    "cornell-superseded": Source(
        geom_gcn("cornell", BEFORE_2022),
        Facts(183, 298, 298, 1703, 5, 0.301, 1, 0),
        GEOM_GCN_LICENSE,
        WEBKB,
        "The files that the paper's accuracies came from: Texas's features and labels on Cornell's graph, "
        "which gives a homophily of .30 instead of .11. Never mix with cornell: the node numbers differ.",
    ),
    "chameleon-filtered": Source(
        heterophilous("chameleon_filtered_directed", directed=True),
        Facts(890, 13584, 13584, 2325, 5, 0.244, 1, 0),
        YANDEX_LICENSE,
        f"{PLATONOV}; {MUSAE}",
        "Chameleon without duplicate nodes; the directed file, so that links keep their direction.",
    ),
    "squirrel-filtered": Source(
        heterophilous("squirrel_filtered_directed", directed=True),
        Facts(2223, 65718, 65718, 2089, 5, 0.190, 1, 0),
        YANDEX_LICENSE,
        f"{PLATONOV}; {MUSAE}",
        "Squirrel without duplicate nodes; the directed file, so that links keep their direction.",
    ),
    "minesweeper": Source(
        heterophilous("minesweeper", directed=False),
        Facts(10000, 78804, 39402, 7, 2, 0.683, 1, 0),
        YANDEX_LICENSE,
        PLATONOV,
        "Undirected, each edge on one line of the file.",
    ),
    "tolokers": Source(
        heterophilous("tolokers", directed=False),
        Facts(11758, 1038000, 519000, 10, 2, 0.634, 1, 0),
        YANDEX_LICENSE,
        f"{PLATONOV}; Likhobaba et al., TolokerGraph: interaction of crowd annotators, 2023",
        "Undirected, each edge on one line of the file.",
    ),
    "karate": Source(
        karate,
        Facts(34, 156, 78, 34, 4, 0.802, 1, 0),
        "None stated; published in print.",
        "Zachary, An information flow model for conflict and fission in small groups, J. Anthropological "
        "Research 33, 1977; classes: Kipf and Welling, Semi-supervised classification with graph "
        "convolutional networks, ICLR 2017",
        "No features: x is the identity, as in PyG. Inside the package.",
    ),
    "barbell": Source(
        struc2vec("barbell"),
        Facts(30, 202, 101, 30, 0, None, 1, 0),
        STRUC2VEC_LICENSE,
        RIBEIRO,
        f"{NO_FEATURES} No labels.",
    ),
    "karate-mirrored": Source(
        struc2vec("karate-mirrored"),
        Facts(68, 310, 155, 68, 0, None, 1, 0),
        STRUC2VEC_LICENSE,
        RIBEIRO,
        f"{NO_FEATURES} No labels. "
        "Two copies of the karate club, of 77 edges each (9-31 is absent), and the edge 1-37 between them.",
    ),
    "brazil-airports": Source(
        struc2vec("brazil-airports", labels=True),
        Facts(131, 2077, 1074, 131, 4, 0.248, 1, 0),
        STRUC2VEC_LICENSE,
        RIBEIRO,
        f"{NO_FEATURES} Classes: quartiles of activity. 71 self-loops.",
    ),
    "europe-airports": Source(
        struc2vec("europe-airports", labels=True),
        Facts(399, 11988, 5995, 399, 4, 0.219, 1, 0),
        STRUC2VEC_LICENSE,
        RIBEIRO,
        f"{NO_FEATURES} Classes: quartiles of activity. 2 self-loops.",
    ),
    "usa-airports": Source(
        struc2vec("usa-airports", labels=True),
        Facts(1190, 27198, 13599, 1190, 4, 0.373, 3, 0),
        STRUC2VEC_LICENSE,
        RIBEIRO,
        f"{NO_FEATURES} Classes: quartiles of activity. Ids have gaps: see data.node_id.",
    ),
    "embedded": Source(
        embedded,
        Facts(1215, 5980, 2990, 32, 4, 0.0, 1, 0),
        "MIT",
        "This package.",
        "Generated; needs no download. A supply hierarchy of 30 tiers, in which no edge joins two nodes of a "
        "class: see datasets/_embedded.py.",
    ),
}
"""Every data set, by name; add your own."""
