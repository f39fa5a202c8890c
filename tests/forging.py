"""Files of arrays taken apart and put together again, with a checksum that is right whatever they say."""

import json
from hashlib import sha256

BLANK = "0" * 64


def parts(path):
    """Header, as parsed, and the bytes of the arrays."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def forge(path, header, data):
    """A file with this header (text, or what JSON makes of it) and these bytes."""
    text = header if isinstance(header, str) else json.dumps(header)
    if isinstance(header, dict) and isinstance(metadata := header.get("__metadata__"), dict) and "checksum" in metadata:
        text = json.dumps(header | {"__metadata__": metadata | {"checksum": BLANK}})
    text = text.encode("utf-8", "surrogatepass")
    length = len(text).to_bytes(8, "little")
    digest = sha256(length + text + data).hexdigest()
    path.write_bytes(length + text.replace(BLANK.encode(), digest.encode(), 1) + data)


def contents(path):
    """Header metadata, and dtype, shape and bytes of each array by its name; the JSON is one of them."""
    header, data = parts(path)
    metadata = header.pop("__metadata__")
    arrays = {name: [entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])]] for name, entry in header.items()}
    return metadata, arrays


def forge_contents(path, metadata, arrays):
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, shape, raw) in arrays.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    forge(path, header, data)
