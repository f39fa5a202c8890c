"""More than one machine: the same training, preparation and prediction, on a Ray cluster."""

try:
    import ray  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("a cluster needs Ray: pip install mirrorlda[ray]") from error

from mirrorlda.cluster.cluster import Cluster
from mirrorlda.cluster.versions import ClusterError

__all__ = ["Cluster", "ClusterError"]
