"""One self-contained page about a folder of results: runs, sweeps and answers to planning questions."""

from analysis.report.page import write_report

__all__ = ["write_report"]
