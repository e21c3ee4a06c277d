"""Keys: how often embedding rows are asked for, from a formula or from a log."""

from simulator.workload.keys.batch_keys import BatchKeys, batch_keys
from simulator.workload.keys.features import Feature
from simulator.workload.keys.frequencies import Frequencies, MandelbrotFit, ZipfFit, fit_mandelbrot, fit_zipf
from simulator.workload.keys.key_log import KeyLog, LogOptions, read_key_log
from simulator.workload.keys.layered import Layered
from simulator.workload.keys.popularity import Independent, OwnerLoad, Popularity
from simulator.workload.keys.reading import Progress
from simulator.workload.keys.recorded import LogColumn, Recorded
from simulator.workload.keys.reuse import ReuseHistogram
from simulator.workload.keys.sequences import SequenceColumns
from simulator.workload.keys.statistics import LogStatistics, RangeSpread, TableStatistics
from simulator.workload.keys.summary import summarize
from simulator.workload.keys.zipf import BoundedZipf, Uniform, ZipfMandelbrot

__all__ = [
    "BatchKeys",
    "BoundedZipf",
    "Feature",
    "Frequencies",
    "Independent",
    "KeyLog",
    "Layered",
    "LogColumn",
    "LogOptions",
    "LogStatistics",
    "MandelbrotFit",
    "OwnerLoad",
    "Popularity",
    "Progress",
    "RangeSpread",
    "Recorded",
    "ReuseHistogram",
    "SequenceColumns",
    "TableStatistics",
    "Uniform",
    "ZipfFit",
    "ZipfMandelbrot",
    "batch_keys",
    "fit_mandelbrot",
    "fit_zipf",
    "read_key_log",
    "summarize",
]
