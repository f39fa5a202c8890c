from mirrorlda.cluster import *
