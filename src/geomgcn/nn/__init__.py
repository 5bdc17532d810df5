"""The layer and the models: tensors in, tensors out."""

from geomgcn.nn._adjacency import Adjacency as Adjacency
from geomgcn.nn._features import SparseFeatures as SparseFeatures
from geomgcn.nn._features import prepare_features as prepare_features
from geomgcn.nn._geom_conv import GeomConv as GeomConv
from geomgcn.nn._models import GAT as GAT
from geomgcn.nn._models import GCN as GCN
from geomgcn.nn._models import MLP as MLP
from geomgcn.nn._models import GeomGCN as GeomGCN
