"""Pictures of runs: the only place that knows matplotlib. Each writes PNG or SVG, by suffix."""
