"""Generators of random numbers as JSON, and back."""

from __future__ import annotations

from typing import Any

import numpy as np


def generator_as_json(rng: np.random.Generator) -> dict[str, Any]:
    """Where a generator of random numbers is in its sequence, as plain values.

    Examples
    --------
    >>> import numpy as np
    >>> from mirrorlda.data.files.generators import generator_as_json, generator_from_json
    >>> rng = np.random.default_rng(0)
    >>> twin = generator_from_json(generator_as_json(rng))
    >>> bool(rng.random() == twin.random())
    True
    """
    state: Any = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise ValueError(f"the generator is a {state['bit_generator']}, expected PCG64")
    numbers = {"state": state["state"]["state"], "inc": state["state"]["inc"]}
    return {"bit_generator": "PCG64", **numbers, "has_uint32": state["has_uint32"], "uinteger": state["uinteger"]}


def generator_from_json(value: Any) -> np.random.Generator:
    """The generator that `generator_as_json` was given, at the same place of its sequence."""
    bits = {"state": 128, "inc": 128, "has_uint32": 1, "uinteger": 32}
    if not isinstance(value, dict) or set(value) != {"bit_generator", *bits} or value["bit_generator"] != "PCG64":
        raise ValueError("found no state of a PCG64 generator where one was expected")
    for name, width in bits.items():
        if type(value[name]) is not int or not 0 <= value[name] < 2**width:
            raise ValueError(f"{name} of the generator is not a whole number of {width} bits")
    if value["inc"] % 2 == 0:
        raise ValueError("inc of the generator is even, expected an odd number")
    generator = np.random.PCG64(0)
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": value["state"], "inc": value["inc"]},
        "has_uint32": value["has_uint32"],
        "uinteger": value["uinteger"],
    }
    return np.random.Generator(generator)
