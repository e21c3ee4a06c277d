"""recscale: how long a training step of a large recommendation model takes on a cluster, and why."""
