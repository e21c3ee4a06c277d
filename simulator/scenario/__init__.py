"""Scenario files: one YAML file is one complete run.

from simulator.scenario import load, run_scenario
report = run_scenario(load("scenarios/quickstart.yaml")).report
"""

from simulator.scenario.scenario import Scenario, load
from simulator.scenario.simulate import Run, run_scenario

__all__ = ["Run", "Scenario", "load", "run_scenario"]
