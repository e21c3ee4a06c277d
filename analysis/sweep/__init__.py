"""Sweeps: many scenarios from one grid file, run side by side, kept as they finish."""

from analysis.sweep.dataset import Dataset
from analysis.sweep.grid import Grid, read_grid
from analysis.sweep.running import SweepRequest, sweep

__all__ = ["Dataset", "Grid", "SweepRequest", "read_grid", "sweep"]
