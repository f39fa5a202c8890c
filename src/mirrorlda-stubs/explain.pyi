from mirrorlda.inspect.explain import *
