"""Data sets by name, from verified raw files.

Raw files come from their publishers (cached), or from the folder that the environment variable
``GEOMGCN_MIRROR`` names. Every file is pinned by its hash, and every graph by the facts that its
source states.
"""

from geomgcn.datasets._download import MIRROR_VARIABLE as MIRROR_VARIABLE
from geomgcn.datasets._download import DataError as DataError
from geomgcn.datasets._download import RemoteFile as RemoteFile
from geomgcn.datasets._download import fetch as fetch
from geomgcn.datasets._download import fetch_file as fetch_file
from geomgcn.datasets._download import known_files as known_files
from geomgcn.datasets._load import load as load
from geomgcn.datasets._load import measure as measure
from geomgcn.datasets._own import is_graph_file as is_graph_file
from geomgcn.datasets._own import read_graph as read_graph
from geomgcn.datasets._sources import SOURCES as SOURCES
from geomgcn.datasets._sources import Facts as Facts
from geomgcn.datasets._sources import Source as Source
from geomgcn.datasets._statistics import PUBLISHED as PUBLISHED
from geomgcn.datasets._statistics import format_table as format_table
from geomgcn.datasets._statistics import statistics as statistics
from geomgcn.datasets._statistics import table as table
