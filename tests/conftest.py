"""The grid that inference and back-propagation share, the maker of random problems, hypothesis' settings."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings

settings.register_profile("mirrorlda", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("mirrorlda")

# Around the widths of vectors and blocks.
SIZES = [0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 120, 500]


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
