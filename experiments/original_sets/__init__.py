"""The paper's own data sets as their authors publish them: a record at a time, from files of any size, compressed or not.

A record that is broken is left out and counted in a `Tally`; where none is given, a warning at the end says how many there were
and where. `Tally(skip=False)` makes the first one an error. Data that is cut short is an error always.
"""

from original_sets.amazon import amazon_reviews
from original_sets.blitzer import blitzer_counts, blitzer_reviews

__all__ = ["amazon_reviews", "blitzer_counts", "blitzer_reviews"]
