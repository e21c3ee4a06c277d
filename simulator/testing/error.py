"""What a check of a policy raises."""

from simulator.errors import RecscaleError


class PolicyError(RecscaleError, AssertionError):
    """A policy breaks its contract; the message says which part of it, and where."""
