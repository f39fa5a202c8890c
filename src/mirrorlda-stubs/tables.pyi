from mirrorlda.data.files.tables import *
