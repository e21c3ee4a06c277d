"""Calibration: parameters found from measurements, with intervals and what they could not decide."""

from simulator.calibration.fitting import FitResult, Parameter, Target, fit, reported

__all__ = ["FitResult", "Parameter", "Target", "fit", "reported"]
