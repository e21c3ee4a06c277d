"""Figures of papers, recomputed: our numbers beside the published ones, with the roles of both.

`python -m analysis.figures DIR [NAME...]` writes each as PNG, SVG and CSV; the notebooks show the same.
In Python: `figure("fig_bagpipe_skew").compute()`.
"""

from analysis.figures.catalog import figure, figures
from analysis.figures.frame import Computed, Figure
from analysis.figures.lines import lines
from analysis.figures.marks import Keys

__all__ = ["Computed", "Figure", "Keys", "figure", "figures", "lines"]
