"""The embedded graph: a supply hierarchy, generated, in which likes are far apart and unlikes linked.

Thirty tiers lie below each other. Every place in a tier has a lateral coordinate and deals with places
of the next tier that lie near it, so the graph is a sheet with an up, a down and a sideways. The tiers
repeat three roles, top to bottom: grower, maker, trader, grower, and so on. Some places keep three
assistants, who know nobody else. The class of a node is its role: its place in the hierarchy, or, for
assistants, its structure.

Both weaknesses of message passing that the paper names are built in:

* *The bag of neighbours has no structure.* A maker deals with growers above and traders below. Their
  features arrive in one bag, which says nothing about who was above. No edge joins two nodes of a class.
* *Likes are out of reach.* Assistants of one place are two steps apart, places of one tier at least two,
  the next tier of the same role three, and most likes much farther, while in a latent space that keeps
  the sheet's shape the nearest nodes are often alike.

A node's own features say little: each of 32 words is there by chance, those of its role somewhat more often.
"""

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from torch_geometric.data import Data

CLASS_NAMES = ("grower", "maker", "trader", "assistant")
ASSISTANT = 3
NUM_ROLES = 3  # of the tiers

NUM_TIERS = 30
PLACES = 30  # in a tier
PARTNERS = 4  # the nearest places of the next tier; each place deals with all but one of them
HOSTS = 105  # places with assistants
ASSISTANTS = 3  # of a host

NUM_WORDS = 32
RARE, FREQUENT = 0.05, 0.11  # chance of a word of another role, and of one's own

Pairs = Int64[np.ndarray, "num_pairs 2"]


def embedded_graph(seed: int = 0) -> Data:
    """Generate the supply hierarchy described in this module.

    Edges run in both directions. Node numbers are shuffled, and tell nothing. The same seed gives the
    same bytes; seed 0 is the graph that ``datasets.load("embedded")`` returns.

    Example:
        >>> data = embedded_graph()
        >>> data.num_nodes, data.class_names
        (1215, ('grower', 'maker', 'trader', 'assistant'))
        >>> bool((data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).any())
        False
    """
    # Uniform numbers and sorting only: numpy keeps PCG64's stream, but may change how it deals or shuffles.
    rng = np.random.Generator(np.random.PCG64(seed))
    num_places = NUM_TIERS * PLACES
    lateral = np.sort(rng.random((NUM_TIERS, PLACES)), axis=1)
    host = np.argsort(rng.random(num_places))[:HOSTS]
    assistant = num_places + np.arange(HOSTS * ASSISTANTS)
    hired = np.stack([np.repeat(host, ASSISTANTS), assistant], axis=1)
    pairs = np.concatenate([_dealings(lateral, rng), hired])

    tier = np.repeat(np.arange(NUM_TIERS), PLACES)
    role = np.concatenate([tier % NUM_ROLES, np.full(assistant.size, ASSISTANT)])
    words = _words(role, rng)

    node = np.argsort(rng.random(role.size))  # the number of each place and assistant
    order = np.argsort(node)
    edges = node[np.concatenate([pairs, pairs[:, ::-1]])]
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return Data(
        x=torch.from_numpy(words[order]),
        edge_index=torch.from_numpy(edges.T.copy()),
        y=torch.from_numpy(role[order]),
        class_names=CLASS_NAMES,
    )


def _dealings(lateral: Float64[np.ndarray, "num_tiers places"], rng: np.random.Generator) -> Pairs:
    """Return who deals with whom, the upper place first; places are numbered tier by tier."""
    place = np.arange(lateral.size).reshape(lateral.shape)
    distance = np.abs(lateral[:-1, :, None] - lateral[1:, None, :])  # tier, upper place, lower place
    partner = np.argsort(distance, axis=2, kind="stable")[:, :, :PARTNERS]
    left_out = np.argmin(rng.random(partner.shape), axis=2)
    deals = np.zeros(distance.shape, dtype=bool)
    np.put_along_axis(deals, partner, np.arange(PARTNERS) != left_out[:, :, None], axis=2)

    # Whoever nobody above chose deals with the nearest there, so that the graph is in one piece.
    tier, lower = np.nonzero(~deals.any(axis=1))
    deals[tier, distance[tier, :, lower].argmin(axis=1), lower] = True
    tier, upper, lower = np.nonzero(deals)
    return np.stack([place[tier, upper], place[tier + 1, lower]], axis=1)


def _words(
    role: Int64[np.ndarray, " num_nodes"], rng: np.random.Generator
) -> Float32[np.ndarray, "num_nodes num_words"]:
    """Return a bag of words for each node; every role has an equal share of the vocabulary."""
    owner = np.arange(NUM_WORDS) * len(CLASS_NAMES) // NUM_WORDS
    chance = np.where(role[:, None] == owner, FREQUENT, RARE)
    return (rng.random(chance.shape) < chance).astype(np.float32)
