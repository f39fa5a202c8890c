"""Generators of random numbers as JSON: they go on where they were, and what is none is refused."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mirrorlda.data.files.generators import generator_as_json, generator_from_json


@pytest.mark.parametrize("n_drawn", [0, 3])
def test_a_generator_goes_on_where_it_was(n_drawn):
    rng = np.random.default_rng(5)
    rng.integers(10, size=n_drawn, dtype=np.uint32)
    twin = generator_from_json(json.loads(json.dumps(generator_as_json(rng))))
    assert_array_equal(rng.integers(2**31, size=5, dtype=np.uint32), twin.integers(2**31, size=5, dtype=np.uint32))
    assert_array_equal(rng.standard_normal(5), twin.standard_normal(5))


@pytest.mark.parametrize(
    "change",
    [{"inc": 2}, {"state": -1}, {"state": 2**128}, {"uinteger": 0.5}, {"has_uint32": True}, {"bit_generator": "MT19937"}],
)
def test_states_that_are_no_generator_are_refused(change):
    value = generator_as_json(np.random.default_rng(0)) | change
    with pytest.raises(ValueError, match="generator"):
        generator_from_json(value)


def test_only_generators_that_can_be_carried_are():
    with pytest.raises(ValueError, match="MT19937"):
        generator_as_json(np.random.Generator(np.random.MT19937(0)))
