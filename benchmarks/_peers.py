"""What the embeddings are measured beside: each function returns positions and CPU seconds.

Edges are the canonical ones (both directions, sorted). Imports, compilation and conversion into a
library's own form of a graph are outside the seconds.
"""

import time

import numpy as np


def timed(function):
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def matrix(edges, num_nodes):
    from scipy.sparse import csr_array

    return csr_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(num_nodes, num_nodes))


def scipy_isomap(edges, num_nodes, **_):
    """What one would write: ``shortest_path``, double centering, ``eigsh`` on the dense matrix."""
    from scipy.sparse.csgraph import connected_components, shortest_path
    from scipy.sparse.linalg import eigsh

    graph = matrix(edges, num_nodes)
    _, labels = connected_components(graph, directed=False)
    largest = np.flatnonzero(labels == np.bincount(labels).argmax())
    graph = graph[largest][:, largest]

    def run():
        distances = shortest_path(graph, method="D", unweighted=True)
        squared = distances**2
        squared -= squared.mean(axis=0)
        squared -= squared.mean(axis=1, keepdims=True)
        values, vectors = eigsh(-0.5 * squared, k=2, which="LA")
        return vectors[:, ::-1] * np.sqrt(values[::-1])

    found, seconds = timed(run)
    pos = np.full((num_nodes, 2), np.nan)
    pos[largest] = found
    return pos, seconds


def igraph_isomap(edges, num_nodes, **_):
    """igraph's multidimensional scaling of shortest paths."""
    import igraph

    half = edges[:, edges[0] < edges[1]]
    graph = igraph.Graph(n=num_nodes, edges=half.T)
    layout, seconds = timed(lambda: graph.layout_mds(dim=2))
    return np.array(layout.coords), seconds


def networkit_landmarks(edges, num_nodes, landmarks=100, **_):
    """NetworKit's PivotMDS: scaling of the distances to some nodes."""
    import networkit

    networkit.setNumberOfThreads(1)
    graph = networkit.graph.Graph(num_nodes)
    for u, v in edges[:, edges[0] < edges[1]].T.tolist():
        graph.addEdge(u, v)
    method = networkit.viz.PivotMDS(graph, 2, landmarks)
    _, seconds = timed(method.run)
    return np.array(method.getCoordinates()), seconds


def gensim_poincare(edges, num_nodes, epochs=60, negatives=10, seed=0, **_):
    from gensim.models.poincare import PoincareModel

    pairs = [(str(u), str(v)) for u, v in edges.T.tolist()]

    def run():
        model = PoincareModel(pairs, size=2, negative=negatives, seed=seed)
        model.train(epochs)
        return model

    model, seconds = timed(run)
    return np.stack([model.kv.get_vector(str(v)) for v in range(num_nodes)]), seconds


def sklearn_spectral(edges, num_nodes, **_):
    from sklearn.manifold import SpectralEmbedding

    graph = matrix(edges.astype(np.int32), num_nodes)
    method = SpectralEmbedding(n_components=2, affinity="precomputed", random_state=0)
    return timed(lambda: method.fit_transform(graph))


def fastdtw_costs(sequences):
    """Warp pairs of sequences of (degree, count) by the approximation that the original struc2vec uses."""
    from fastdtw import fastdtw

    def cost(a, b):
        return (max(a[0], b[0]) / min(a[0], b[0]) - 1) * max(a[1], b[1])

    return timed(lambda: np.array([fastdtw(a, b, radius=1, dist=cost)[0] for a, b in sequences]))


def gensim_skip_gram(walks, window, negatives, epochs):
    """Train word2vec in two dimensions on walks; returns CPU seconds."""
    from gensim.models import Word2Vec

    sentences = [[str(v) for v in walk] for walk in walks.tolist()]
    settings = {"vector_size": 2, "window": window, "negative": negatives, "epochs": epochs}
    plain = {"sg": 1, "hs": 0, "min_count": 0, "sample": 0, "workers": 1, "seed": 0}
    return timed(lambda: Word2Vec(sentences, **settings, **plain))[1]
