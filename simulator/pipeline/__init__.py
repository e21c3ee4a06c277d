"""Pipelines as data: stages, streams, carries and buffers, and the timed marked graph they form."""

from simulator.pipeline.compiled import MarkedGraph, Node
from simulator.pipeline.critical import CriticalCycle, critical_cycle
from simulator.pipeline.graph import compile_pipeline
from simulator.pipeline.stage import Access, Buffer, Carry, Pipeline, Stage

__all__ = [
    "Access",
    "Buffer",
    "Carry",
    "CriticalCycle",
    "MarkedGraph",
    "Node",
    "Pipeline",
    "Stage",
    "compile_pipeline",
    "critical_cycle",
]
