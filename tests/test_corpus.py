"""Documents in: what is accepted, what is refused and where, and that the user's matrix stays as it was."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda.corpus import LARGEST_COUNT, Documents, as_documents

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
