"""What `make soak` proves in full, and `make test` by a sample."""

import itertools
import os
from collections.abc import Hashable, Mapping, Sequence

# How many times as long the long proofs are: 1 in `make test`, 10 in `make soak`.
FACTOR = int(os.environ.get("MIRRORLDA_SOAK", "1"))
IS_SOAK = FACTOR > 1


def covering(combinations: Sequence[Mapping[str, Hashable]]) -> list[int]:
    """Places of so many combinations that every two values which meet in one of all combinations meet in one of these.

    Those that cover the most pairs are taken first, so that few are enough.

    Examples
    --------
    >>> covering([{"x": x, "y": y, "z": z} for x in "ab" for y in "ab" for z in "ab"])
    [0, 3, 5, 6]
    """
    pairs = [frozenset(itertools.combinations(sorted(each.items()), 2)) for each in combinations]
    left = frozenset().union(*pairs)
    taken = []
    for n_new in range(max(map(len, pairs), default=0), 0, -1):
        for place, covered in enumerate(pairs):
            if len(covered & left) >= n_new:
                taken.append(place)
                left -= covered
    return sorted(taken)
