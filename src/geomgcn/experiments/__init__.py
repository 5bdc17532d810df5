"""Table entries as data, and the one function that runs them."""

from geomgcn.experiments._cell import CellResult as CellResult
from geomgcn.experiments._cell import run_cell as run_cell
from geomgcn.experiments._prepare import Prepared as Prepared
from geomgcn.experiments._prepare import check_spaces as check_spaces
from geomgcn.experiments._prepare import describe_parts as describe_parts
from geomgcn.experiments._prepare import embedding_of as embedding_of
from geomgcn.experiments._prepare import graph_of as graph_of
from geomgcn.experiments._prepare import parse_neighborhood as parse_neighborhood
from geomgcn.experiments._prepare import prepare as prepare
from geomgcn.experiments._prepare import structure_parts as structure_parts
from geomgcn.experiments._spec import MODELS as MODELS
from geomgcn.experiments._spec import Cell as Cell
