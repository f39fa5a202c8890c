"""The grid that inference and back-propagation share, random problems, a cluster, a browser, hypothesis' settings."""

import os
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings
from soak import IS_SOAK, covering

# Processes share what JAX has compiled, and so do runs; `make clean` removes it.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

settings.register_profile("mirrorlda", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("mirrorlda")

# Around the widths of vectors and blocks.
SIZES = [0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 120, 500]


def pytest_collection_modifyitems(config, items):
    """Of a test marked `pairwise`, `make test` takes combinations of parameters in which every two values meet."""
    if IS_SOAK:
        return
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("pairwise"):
            tests[item.parent.nodeid, item.originalname].append(item)
    left_out = set()
    for combinations in tests.values():
        values = [{name: repr(value) for name, value in item.callspec.params.items()} for item in combinations]
        taken = set(covering(values))
        left_out |= {item for place, item in enumerate(combinations) if place not in taken}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


@pytest.fixture(params=[np.float64, np.float32])
def dtype(request):
    return request.param


@pytest.fixture(params=[1, 2, 3, 5, 7, 8, 9, 16, 17, 20, 33, 50, 64, 100, 300])
def n_topics(request):
    return request.param


@pytest.fixture(params=[0.1, 0.5, 1.0, 1.001, 1.5, "vector"])
def alpha(request, n_topics, dtype):
    """Rounded to dtype, so that the oracle and a float32 core read the same alpha - 1."""
    value = np.linspace(0.6, 1.8, n_topics) if request.param == "vector" else np.float64(request.param)
    return value.astype(dtype).astype(np.float64)


@pytest.fixture(scope="session")
def make_problem():
    """make_problem(n_topics, sizes=SIZES, n_words=600, dtype=float64) -> phi, X.

    X has one document for each number of distinct words in `sizes`, with real counts of mean 2.
    """

    def make(n_topics, sizes=SIZES, n_words=600, dtype=np.float64):
        rng = np.random.default_rng(0)
        phi = rng.gamma(0.3, size=(n_words, n_topics)) + 1e-3
        phi /= phi.sum(axis=0)
        words = [np.sort(rng.choice(n_words, size, replace=False)) for size in sizes]
        counts = rng.gamma(1.0, 2.0, size=sum(sizes))
        csr = counts.astype(dtype), np.concatenate(words), np.cumsum([0, *sizes])
        return phi.astype(dtype), sp.csr_array(csr, shape=(len(sizes), n_words))

    return make


@pytest.fixture(scope="session")
def machines():
    """A Ray cluster of two machines with two processors each; who asks for it connects to its `address`."""
    pytest.importorskip("ray")
    from ray_cluster import machines

    with machines(2, num_cpus=2) as started:
        yield started


@pytest.fixture
def connected(machines):
    """The machines, with this process connected to them: a `Cluster("local")` is then these, and nothing is started for it."""
    from mirrorlda.distributed import Cluster

    with Cluster(machines.address) as there:
        yield there


@pytest.fixture(scope="session")
def browser():
    """Chromium, driven by playwright."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None and os.environ.get("CI"):
        pytest.fail("no chromium, chromium-browser or google-chrome is installed: `make browser` installs it")
    if chromium is None:
        pytest.skip("no chromium, chromium-browser or google-chrome is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """open_page(path, **context) -> the page of a file, with the lists `errors` and `requests`; both must stay empty.

    `errors` are exceptions and what is written to the console as an error or a warning; `requests` the addresses of whatever the
    page loads beside itself. `context` goes to playwright's `new_context`: viewport, color_scheme and the like.
    """
    opened = []

    def open_page(path, **context):
        page = browser.new_context(**context).new_page()
        page.errors, page.requests = [], []
        own = Path(path).resolve().as_uri()
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda message: page.errors.append(message.text) if message.type in ("error", "warning") else None)
        page.on("request", lambda request: page.requests.append(request.url) if request.url.partition("#")[0] != own else None)
        opened.append(page)
        page.goto(own)
        return page

    yield open_page
    for page in opened:
        page.context.close()
    assert [page.errors for page in opened] == [[]] * len(opened)
    assert [page.requests for page in opened] == [[]] * len(opened)
