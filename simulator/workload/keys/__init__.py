"""Keys: how often embedding rows are asked for, from a formula or from a log."""

from simulator.workload.keys.features import Feature
from simulator.workload.keys.frequencies import Frequencies, ZipfFit, fit_zipf
from simulator.workload.keys.key_log import KeyLog, LogOptions, read_key_log
from simulator.workload.keys.popularity import OwnerLoad, Popularity
from simulator.workload.keys.recorded import Recorded
from simulator.workload.keys.sequences import SequenceColumns
from simulator.workload.keys.statistics import LogStatistics, TableStatistics
from simulator.workload.keys.summary import summarize
from simulator.workload.keys.zipf import BoundedZipf, Uniform

__all__ = [
    "BoundedZipf",
    "Feature",
    "Frequencies",
    "KeyLog",
    "LogOptions",
    "LogStatistics",
    "OwnerLoad",
    "Popularity",
    "Recorded",
    "SequenceColumns",
    "TableStatistics",
    "Uniform",
    "ZipfFit",
    "fit_zipf",
    "read_key_log",
    "summarize",
]
