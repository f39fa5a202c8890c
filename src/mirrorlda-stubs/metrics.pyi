from mirrorlda.evaluation.metrics import *
