"""Who waits for whom: a pipeline and its durations become a timeline."""

from simulator.engine.durations import Durations, Variation, tabulate

__all__ = ["Durations", "Variation", "tabulate"]
