"""Several machines, which Ray plays on this one: real processes that share nothing but files."""

import os
from contextlib import contextmanager
from pathlib import Path

MACHINE = {"num_cpus": 1, "object_store_memory": 200 * 2**20, "include_dashboard": False}


@contextmanager
def machines(n=2, **options):
    """So many of them, as Ray's own `Cluster`, which has the `address` of their head."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray warns of what it leaves to later versions.
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    # A machine that is dead is taken for dead after two seconds, not after half a minute.
    os.environ |= {"RAY_health_check_period_ms": "500", "RAY_health_check_timeout_ms": "1000"}
    os.environ |= {"RAY_health_check_failure_threshold": "3", "RAY_health_check_initial_delay_ms": "0"}
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args=MACHINE | options)
    try:
        for _ in range(n - 1):
            started.add_node(**(MACHINE | options))
        started.wait_for_nodes()
        yield started
    finally:
        started.shutdown()


def workers(pid=None):
    """Ids of the processes, below this one, in which Ray runs tasks; not of those that its machines cannot be without."""
    found = []
    for task in Path(f"/proc/{pid or os.getpid()}/task").glob("*"):
        for child in (task / "children").read_text().split():
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes()
                found += ([int(child)] if command.startswith(b"ray::") and b"Agent" not in command else []) + workers(child)
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found
