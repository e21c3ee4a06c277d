"""Who owns which rows, and what a step therefore asks of each rank."""

from simulator.sharding.plan import RowWise
from simulator.sharding.step import MicroStep, TrainStep
from simulator.sharding.traffic import Traffic

__all__ = ["MicroStep", "RowWise", "Traffic", "TrainStep"]
