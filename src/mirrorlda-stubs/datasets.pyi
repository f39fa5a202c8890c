from mirrorlda.data.datasets import *
