from mirrorlda.data.readers import *
