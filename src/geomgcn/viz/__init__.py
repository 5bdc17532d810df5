"""Pictures and reports; they need matplotlib, ``pip install "geomgcn[plot]"``, when one is drawn."""

from geomgcn.viz._accuracy_chart import accuracy_chart as accuracy_chart
from geomgcn.viz._canvas import save as save
from geomgcn.viz._latent_map import latent_map as latent_map
from geomgcn.viz._neighborhood_map import neighborhood_map as neighborhood_map
from geomgcn.viz._neighborhood_map import typical_node as typical_node
from geomgcn.viz._space_map import space_map as space_map
from geomgcn.viz.embedding_report import write_embedding_report as write_embedding_report
from geomgcn.viz.report import demo_cells as demo_cells
from geomgcn.viz.report import format_table as format_table
from geomgcn.viz.report import write_demo_report as write_demo_report
