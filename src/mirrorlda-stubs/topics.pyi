from mirrorlda.inspect.topics import *
