"""What the machines of a cluster must agree on for one result, and the error of a cluster that cannot work."""

from __future__ import annotations

import numpy as np
import ray
from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]

import mirrorlda
from mirrorlda import _core


class ClusterError(RuntimeError):
    """A cluster cannot be reached, or its machines cannot work together."""


def check_versions(of_driver: dict[str, str]) -> None:
    """That this machine, which may have joined later than others, has the versions of the driver."""
    check_same(versions(), of_driver, ray.util.get_node_ip_address())


def check_same(found: dict[str, str], expected: dict[str, str], address: str) -> None:
    for name, version in expected.items():
        if found.get(name) != version:
            raise ClusterError(
                f"machine {address} has {name} {found.get(name)}, the driver {version}: "
                "all machines need the same versions to give the same result"
            )


def versions() -> dict[str, str]:
    """What the bits of a result depend on; NPY_DISABLE_CPU_FEATURES takes instruction sets from NumPy, whose responses are."""
    of_numpy = " ".join(sorted(name for name, is_on in __cpu_features__.items() if is_on))
    return {
        "mirrorlda": mirrorlda.__version__,
        "NumPy": np.__version__,
        "instruction set": _core.instruction_set(),
        "instruction sets of NumPy": of_numpy,
    }
