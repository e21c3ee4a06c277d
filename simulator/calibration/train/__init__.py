"""A small recommendation model trained for real: the policies of the simulator, executed on real rows."""
