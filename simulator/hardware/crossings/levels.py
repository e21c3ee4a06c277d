"""The links of two levels: one each way for each rank, inside its fast domain and out of it."""

import numpy as np

from simulator.hardware.crossings.blocks import Blocks, Book, Rule
from simulator.quantities import IntArray


def two_levels(domain: IntArray, near: float, far: float) -> Blocks:
    """Return the links of ranks in these domains (ranks,), at `near` and `far` bytes/s each way."""
    rank, book = np.arange(len(domain), dtype=np.int64), Book()
    for name, rate, within, across in (("near", near, domain, rank), ("far", far, None, domain)):
        rates = np.full(len(rank), rate)
        out, into = (book.links(rank, [f"{name} {way}"] * len(rank), rates) for way in ("out", "in"))
        book.rule(Rule(within, (across,), source=out, far=name == "far"))
        book.rule(Rule(within, (across,), target=into, far=name == "far"))
        for link in (out, into):
            book.beside(rank, link)
    return book.close()
