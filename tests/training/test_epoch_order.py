"""The order of an epoch: what the shuffle guarantees."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mirrorlda.training.epoch_order import window_blocks, windows


@pytest.mark.parametrize("n_docs", [0, 1, 255, 256, 257, 5_000, 70_000, 200_001])
@pytest.mark.parametrize("batch_size", [1, 100, 1000])
def test_every_document_comes_once(n_docs, batch_size):
    if batch_size == 1 and n_docs > 5000:
        pytest.skip("the same as with 100")
    epoch = list(windows(n_docs, 100 * n_docs, batch_size, seed=3))
    assert_array_equal(np.sort(np.concatenate([np.empty(0, int), *epoch])), np.arange(n_docs))
    assert all(len(window) % batch_size == 0 for window in epoch[:-1]), "a window that is not the last has whole batches"


def test_windows_are_bounded_by_documents_and_by_their_words():
    assert window_blocks(10**6, 100 * 10**6) == 256
    assert window_blocks(10**6, 1000 * 10**6) == 31
    assert window_blocks(10**6, 10**12) == 1
    longest = max(len(window) for window in windows(300_000, 1000 * 300_000, 100, seed=0))
    assert 31 * 256 <= longest < 31 * 256 + 100


@pytest.mark.parametrize("first_batch", [0, 1, 7, 65, 66, 131, 199, 200, 201, 500])
def test_going_on_in_the_middle_gives_the_rest_of_the_epoch(first_batch):
    whole = np.concatenate(list(windows(200_001, 100 * 200_001, 1000, seed=5)))
    rest = np.concatenate([np.empty(0, int), *windows(200_001, 100 * 200_001, 1000, seed=5, first_batch=first_batch)])
    assert_array_equal(rest, whole[1000 * first_batch :])


def test_seeds_give_orders_of_their_own():
    orders = [np.concatenate(list(windows(3000, 300_000, 100, seed=seed))) for seed in (0, 0, 1)]
    assert_array_equal(orders[0], orders[1])
    assert (orders[0] != orders[2]).mean() > 0.99


def test_a_corpus_of_one_window_is_shuffled_completely():
    """Where a document goes says nothing about where its neighbour goes: differences of their places are those of any two."""
    places = np.argsort(np.concatenate(list(windows(20_000, 2_000_000, 500, seed=1))))
    gaps = np.abs(np.diff(places))
    assert abs(gaps.mean() / 20_000 - 1 / 3) < 0.01
    assert abs(np.corrcoef(np.arange(20_000), places)[0, 1]) < 0.03


def test_a_sorted_corpus_is_mixed_to_what_is_promised():
    """Share of the class of the first half of the documents in the windows of 40 epochs: p (1 - p) / 256 is its variance."""
    n_docs = 600_000
    epochs = [windows(n_docs, 100 * n_docs, 1, seed=seed) for seed in range(40)]
    shares = [(window < n_docs // 2).mean() for epoch in epochs for window in epoch if len(window) == 65_536]
    assert abs(np.mean(shares) - 0.5) < 0.01
    # Blocks are drawn without replacement, which takes a little off.
    assert 0.7 * 0.5 / 16 < np.std(shares) < 1.05 * 0.5 / 16
