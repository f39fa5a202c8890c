from mirrorlda.data.text import *
