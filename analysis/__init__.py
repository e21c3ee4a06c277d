"""What people do with the simulator: comparisons, figures, and the command line."""
