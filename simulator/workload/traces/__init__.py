"""Synthetic key traces: popularity by a power law, and what real logs add to it."""

from simulator.workload.traces.effects import Bursts, Drift, Sessions
from simulator.workload.traces.files import write_log
from simulator.workload.traces.population import BatchSize, TablePopulation, fit_population
from simulator.workload.traces.sampling import PowerLawSampler, Sampler, sampler_of
from simulator.workload.traces.skew import SkewFit, fit_skew, sampled_shares
from simulator.workload.traces.spot_check import SpotCheck, compare_ranks, spot_check
from simulator.workload.traces.streams import stream
from simulator.workload.traces.trace import SyntheticTable, SyntheticTrace

__all__ = [
    "BatchSize",
    "Bursts",
    "Drift",
    "PowerLawSampler",
    "Sampler",
    "Sessions",
    "SkewFit",
    "SpotCheck",
    "SyntheticTable",
    "SyntheticTrace",
    "TablePopulation",
    "compare_ranks",
    "fit_population",
    "fit_skew",
    "sampled_shares",
    "sampler_of",
    "spot_check",
    "stream",
    "write_log",
]
