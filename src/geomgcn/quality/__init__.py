"""How good an embedding is, as far as can be told without labels."""

from geomgcn.quality._hops import DistanceAtHop as DistanceAtHop
from geomgcn.quality._hops import DistancesByHop as DistancesByHop
from geomgcn.quality._hops import HopShares as HopShares
from geomgcn.quality._hops import distances_by_hop as distances_by_hop
from geomgcn.quality._hops import hop_shares as hop_shares
from geomgcn.quality._report import Quality as Quality
from geomgcn.quality._report import quality as quality
from geomgcn.quality._sizes import SizeBin as SizeBin
from geomgcn.quality._sizes import Sizes as Sizes
