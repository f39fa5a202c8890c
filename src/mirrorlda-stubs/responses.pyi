from mirrorlda.method.responses import *
