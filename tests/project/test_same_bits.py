"""Every estimator gives what it gave before: the same bits on the machine of the record, the same figures elsewhere."""

import json

import same_bits

RECORDED = json.loads(same_bits.RECORDED.read_text())


def test_every_estimator_gives_what_was_recorded():
    exact = RECORDED["machine"] == same_bits.machine()
    assert list(same_bits.differences(same_bits.results(), RECORDED["results"], exact=exact)) == []


def test_a_changed_bit_and_a_changed_figure_are_told():
    name, seen = next(iter(RECORDED["results"].items()))
    key = "topic_shares_"
    bits, figures = seen[key]
    other_bits = {name: {**seen, key: ["0" * 12, figures]}}
    other_figures = {name: {**seen, key: [bits, [figures[0] + 1, figures[1]]]}}
    assert len(list(same_bits.differences(other_bits, {name: seen}, exact=True))) == 1
    assert list(same_bits.differences(other_bits, {name: seen}, exact=False)) == []
    assert len(list(same_bits.differences(other_figures, {name: seen}, exact=False))) == 1
    assert len(list(same_bits.differences({}, {name: seen}, exact=False))) == len(seen)
