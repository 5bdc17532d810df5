"""Embeddings: positions of nodes in a latent space."""

from geomgcn.embeddings._base import Embedding as Embedding
from geomgcn.embeddings._base import by_name as by_name
from geomgcn.embeddings._base import embed_cached as embed_cached
from geomgcn.embeddings._base import known as known
from geomgcn.embeddings._coordinates import Coordinates as Coordinates
from geomgcn.embeddings._isomap import Isomap as Isomap
from geomgcn.embeddings._isomap import hop_distances as hop_distances
from geomgcn.embeddings._poincare import Poincare as Poincare
from geomgcn.embeddings._quality import Reconstruction as Reconstruction
from geomgcn.embeddings._quality import reconstruction as reconstruction
from geomgcn.embeddings._spectral import Spectral as Spectral
from geomgcn.embeddings._struc2vec import Struc2Vec as Struc2Vec
from geomgcn.embeddings._text import from_text as from_text
from geomgcn.embeddings._text import split_settings as split_settings
