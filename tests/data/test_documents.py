"""Documents in: what is accepted, what is refused and where, and that the user's matrix stays as it was."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from soak import FACTOR

from mirrorlda.data.documents import LARGEST_COUNT, Documents, as_documents

DENSE = np.array([[2, 0, 1, 0], [0, 0, 0, 0], [0, 5, 0, 3], [1, 1, 1, 1]])


def dense(documents):
    X = np.zeros((documents.n_docs, documents.n_words), documents.counts.dtype)
    for d, (begin, end) in enumerate(zip(documents.indptr[:-1], documents.indptr[1:], strict=True)):
        np.add.at(X[d], documents.indices[begin:end], documents.counts[begin:end])
    return X


KINDS = [np.array, np.ndarray.tolist, np.asfortranarray, sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_matrix_gives_the_same_documents(kind):
    documents = as_documents(kind(DENSE))
    assert (documents.n_docs, documents.n_words) == DENSE.shape
    assert_array_equal(dense(documents), DENSE)
    for name, dtype in (("indptr", np.int64), ("indices", np.int32), ("counts", np.float32)):
        assert getattr(documents, name).dtype == dtype
        assert getattr(documents, name).flags.c_contiguous


@pytest.mark.parametrize(
    ("given", "asked", "expected"),
    [
        (np.float64, None, np.float64),
        (np.float32, None, np.float32),
        (np.int64, None, np.float32),
        (np.uint8, None, np.float32),
        (bool, None, np.float32),
        (np.float64, np.float32, np.float32),
        (np.int32, np.float64, np.float64),
    ],
)
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_precision(kind, given, asked, expected):
    documents = as_documents(kind(DENSE.astype(given)), asked)
    assert documents.counts.dtype == expected
    assert_array_equal(dense(documents), DENSE.astype(given).astype(expected))


def messy(kind):
    """Duplicates, unordered indices and an explicit zero."""
    arrays = np.array([1.0, 2, 4, 0, 3]), np.array([3, 0, 3, 1, 2]), np.array([0, 3, 3, 5])
    return kind(arrays, shape=(3, 4))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_duplicates_are_added_up_and_the_input_stays(kind):
    X, untouched = messy(kind), messy(kind)
    documents = as_documents(X)
    assert_array_equal(dense(documents), [[2, 0, 0, 5], [0, 0, 0, 0], [0, 0, 3, 0]])
    for begin, end in zip(documents.indptr[:-1], documents.indptr[1:], strict=True):
        assert (np.diff(documents.indices[begin:end]) > 0).all()
    for name in ("data", "indices", "indptr"):
        assert_array_equal(getattr(X, name), getattr(untouched, name))


def test_unordered_words_are_kept_with_their_counts():
    X = sp.csr_array((np.array([1.0, 2]), np.array([3, 0]), np.array([0, 2])), shape=(1, 4))
    assert_array_equal(dense(as_documents(X)), [[2, 0, 0, 1]])
    assert_array_equal(X.indices, [3, 0])


def test_a_read_only_matrix_is_read():
    X = sp.csr_array(DENSE.astype(float))
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    assert_array_equal(dense(as_documents(X)), DENSE)


def test_64_bit_indices_are_read():
    X = sp.csr_array(DENSE.astype(float))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert_array_equal(dense(as_documents(X)), DENSE)


@pytest.mark.parametrize("numbers", [[0], [1], [3, 0, 0, 2], [], [1, 1], np.array([False, True, False, True]).nonzero()[0]])
def test_take(numbers):
    documents = as_documents(DENSE)
    taken = documents.take(np.array(numbers, dtype=np.int64))
    assert isinstance(taken, Documents)
    assert taken.n_words == documents.n_words
    assert taken.indptr.dtype == np.int64
    assert taken.indices.dtype == np.int32
    assert_array_equal(dense(taken), DENSE[np.array(numbers, dtype=int)])


def test_totals_are_sums_of_each_document_in_double():
    rng = np.random.default_rng(0)
    X = (rng.poisson(0.3, (200, 50)) * rng.random((200, 50))).astype(np.float32)
    totals = as_documents(X).totals()
    assert totals.dtype == np.float64
    assert_allclose(totals, X.sum(axis=1, dtype=np.float64), rtol=1e-12, atol=1e-12)


def test_totals_of_small_documents_beside_a_huge_one():
    X = np.array([[LARGEST_COUNT, LARGEST_COUNT], [1e-3, 2e-3], [0, 0]])
    assert_allclose(as_documents(X).totals()[1:], [3e-3, 0], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, r"Negative values in data: X\[2, 3\] is -1.*must be non-negative"),
        (np.nan, r"X\[2, 3\] is nan"),
        (np.inf, r"X\[2, 3\] is inf"),
        (2 * LARGEST_COUNT, r"X\[2, 3\] is 2000000000000.*at most 1e\+12"),
    ],
)
@pytest.mark.parametrize("kind", [np.array, sp.csr_array, sp.csc_array])
def test_a_bad_count_is_refused_with_its_place(kind, value, message):
    X = DENSE.astype(float)
    X[2, 3] = value
    with pytest.raises(ValueError, match=message):
        as_documents(kind(X))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"two dimensions.*\(3,\)"),
        (np.ones((2, 2, 2)), r"two dimensions.*\(2, 2, 2\)"),
        (np.array([["a", "b"]]), "must hold numbers"),
        (np.ones((2, 2), complex), "must hold numbers, got dtype complex128"),
        (np.array([[1, None]]), "must hold numbers, got dtype object"),
    ],
)
def test_what_is_not_a_matrix_of_numbers_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_documents(X)


@pytest.mark.parametrize("index", [4, 100, 2**30, -1, -100])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_a_word_beyond_the_matrix_is_refused(kind, index):
    """SciPy does not look at the indices of a matrix that is made from its arrays."""
    X = kind((np.ones(2), np.array([1, index]), np.array([0, 1, 2])), shape=(2, 4))
    with pytest.raises(ValueError, match="ind"):
        as_documents(X)


def test_no_documents_and_no_words_are_documents_too():
    assert as_documents(np.zeros((0, 4))).n_docs == 0
    documents = as_documents(sp.csr_array((3, 4)))
    assert (documents.n_docs, documents.n_words, len(documents.counts)) == (3, 4, 0)
    assert_array_equal(documents.totals(), 0)


# Documents as training sees them


@pytest.fixture
def many():
    """2,000 documents of 0 to 9 words with real counts; every 10th is empty."""
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, 3.0, (2000, 50)) * (rng.random((2000, 50)) < 0.1)
    X[::10] = 0
    return as_documents(X)


def test_logarithmic(dtype):
    """Tiny counts keep their digits: ln(1 + x) is x."""
    X = np.array([[0, 1, 3, 7], [0, 0, 0, 0], [0.5, 2**39 - 1, 1e-20, 0]], dtype)
    expected = np.array([[0, 1, 2, 3], [0, 0, 0, 0], [np.log2(1.5), 39, 1e-20 / np.log(2), 0]])
    documents = as_documents(X)
    scaled = documents.logarithmic()
    assert scaled.counts.dtype == dtype
    assert_allclose(dense(scaled), expected, rtol=4 * np.finfo(dtype).eps)
    assert_array_equal(dense(documents), X)


def test_weighted(dtype):
    word_weights = np.array([0.5, 2.0, 1.0, 0.1])
    documents = as_documents(DENSE, dtype)
    weighted = documents.weighted(word_weights)
    assert weighted.counts.dtype == dtype
    assert_allclose(dense(weighted), DENSE * word_weights, rtol=1e-6)
    assert_array_equal(dense(documents), DENSE)


def all_of(documents):
    return np.arange(documents.n_docs)


@pytest.mark.parametrize("fraction", [0.25, 0.6])
def test_thinned_documents_lose_a_fraction_of_their_entries_and_keep_their_totals_on_average(many, fraction):
    thinned = many.thinned(all_of(many), None, fraction, 0)
    before, after = dense(many), dense(thinned)
    kept = after > 0
    assert (thinned.n_docs, thinned.n_words) == (many.n_docs, many.n_words)
    assert not after[before == 0].any(), "entries were invented"
    assert_allclose(after[kept], before[kept] / (1 - fraction), rtol=1e-12)
    # Four standard deviations of about 9,000 draws.
    assert_allclose(kept.sum() / (before > 0).sum(), 1 - fraction, atol=4 * 0.5 / np.sqrt(9000))
    n_runs = 200
    totals = np.mean([many.thinned(all_of(many), None, fraction, seed).totals() for seed in range(n_runs)], axis=0)
    deviation = np.sqrt((before**2).sum(axis=1) * fraction / (1 - fraction) / n_runs)
    assert (np.abs(totals - many.totals()) <= 5 * deviation).all()
    assert_allclose(totals.sum(), many.totals().sum(), rtol=0.01)


def test_entries_are_left_out_independently(many):
    """Of two entries of a document, and of the same entry of two documents, and in two steps."""
    kept = np.array([dense(many.thinned(all_of(many), None, 0.5, seed)) > 0 for seed in range(100 * FACTOR)])[:, dense(many) > 0]
    for lag in (1, 2, 7, 90):
        assert abs(np.mean(kept[:, lag:] == kept[:, :-lag]) - 0.5) < 0.002
        assert abs(np.mean(kept[lag:] == kept[:-lag]) - 0.5) < 0.002


def test_empty_documents_survive_thinning(many):
    thinned = many.thinned(all_of(many), None, 0.9, 0)
    assert_array_equal(thinned.totals()[::10], 0)
    assert (thinned.totals()[1:10] == 0).any(), "no document lost all its words, so nothing was tested"
    assert thinned.indptr.dtype == np.int64
    assert_array_equal(thinned.take(np.arange(10)).totals(), thinned.totals()[:10])
    nothing = as_documents(np.zeros((3, 4))).thinned(np.arange(3), None, 0.5, 0)
    assert (nothing.n_docs, len(nothing.counts)) == (3, 0)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_thinning_is_the_seeds_whatever_the_threads(many, n_threads):
    one, again, other = (many.thinned(all_of(many), None, 0.25, seed, n_threads) for seed in (3, 3, 4))
    assert_array_equal(dense(one), dense(again))
    assert_array_equal(dense(one), dense(many.thinned(all_of(many), None, 0.25, 3)))
    assert (dense(one) != dense(other)).any()


def test_thinned_documents_have_their_words_weights(many):
    weights, some = np.linspace(0.1, 3, many.n_words), np.array([5, 1, 1])
    taken = many.thinned(some, weights, 0.0, 0)
    assert_allclose(dense(taken), dense(many)[some] * weights, rtol=1e-12)
    assert_array_equal(dense(taken), dense(many.take(some).weighted(weights)))
