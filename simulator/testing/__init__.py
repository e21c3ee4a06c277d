"""Check a policy: that it is pure, live, bounded, fresh as declared, and moves what a step asks for.

For everyone who writes a policy, in this distribution or outside of it:

    from simulator.testing import check_policy
    from simulator.policies.dual_buffer import DualBuffer

    check_policy(DualBuffer(buffers=2))          # returns nothing, or raises PolicyError with the reason
"""

from simulator.testing.check import check_policy
from simulator.testing.error import PolicyError
from simulator.testing.examples import example_clusters, example_steps
from simulator.testing.structure import structure

__all__ = ["PolicyError", "check_policy", "example_clusters", "example_steps", "structure"]
