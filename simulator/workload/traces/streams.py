"""Streams of random numbers that depend on what they are for and not on when they are drawn."""

import hashlib

import numpy as np


def stream(seed: int, label: str, rank: int, batch: int) -> np.random.Generator:
    """Return a generator keyed by (seed, label, rank, batch): the same in any order and process.

    The bits are Philox's (Salmon et al. 2011), a counter cipher made for many independent streams;
    its key is a hash of the four.
    """
    digest = hashlib.blake2b(f"{seed}/{label}/{rank}/{batch}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
