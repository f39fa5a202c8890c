"""More than one machine: the same training, preparation and prediction, on a Ray cluster."""

from mirrorlda.cluster.cluster import Cluster, ClusterError

__all__ = ["Cluster", "ClusterError"]
