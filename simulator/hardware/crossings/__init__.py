"""Which links the messages of an exchange cross, on every kind of fabric: bytes link by link.

links = fabric.crossings(ranks=64, per_host=8, group=None)
links.seconds(links.spread(Exchange(sent, received, group)))   # by class of link, on its busiest one
"""

from simulator.hardware.crossings.blocks import Blocks, Book, Rule
from simulator.hardware.crossings.exchange import Crossings, Exchange, members
from simulator.hardware.crossings.grid import Axis, Grid
from simulator.hardware.crossings.levels import two_levels
from simulator.hardware.crossings.listed import Listed

__all__ = [
    "Axis",
    "Blocks",
    "Book",
    "Crossings",
    "Exchange",
    "Grid",
    "Listed",
    "Rule",
    "members",
    "two_levels",
]
