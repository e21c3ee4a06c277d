"""Random scenarios of every kind, and what must hold between a run and that of a changed scenario."""
