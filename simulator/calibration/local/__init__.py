"""Local runs: measured and executed on this machine, recorded with their environment, and predicted."""
