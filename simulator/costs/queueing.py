"""Queues at a server: when each customer is done, by Lindley's recursion over all of them at once.

D. V. Lindley (1952), doi:10.1017/S0305004100027638: a customer waits for what the one before still has
to wait and be served, less the time between their arrivals.
"""

import numpy as np

from simulator.errors import InputError
from simulator.quantities import FloatArray


def departures(arrivals: FloatArray, service: FloatArray | float) -> FloatArray:
    """Return when each customer of one server leaves, in order of service; seconds, shape (customers,).

    `arrivals` must not fall. With C the sum of the service times up to a customer, Lindley's recursion
    d_n = max(a_n, d_(n-1)) + s_n has the solution d_n = C_n + max over j <= n of (a_j - C_(j-1)).
    Raises InputError when arrivals fall or a service time lies below zero.
    """
    served = np.broadcast_to(np.asarray(service, dtype=np.float64), arrivals.shape)
    if np.any(np.diff(arrivals) < 0) or np.any(served < 0):
        raise InputError("customers must be given in the order of their arrival, with service times from 0")
    done = np.cumsum(served)
    return np.asarray(done + np.maximum.accumulate(arrivals - (done - served)))


def departures_of_cores(arrivals: FloatArray, service: float, cores: int) -> FloatArray:
    """Return the same for a server of `cores` cores and one service time for all.

    First come, first served with equal service times: core c takes customers c, c + cores, ..., each of
    which is a queue of its own (our derivation: nobody overtakes, so the core that is free first is
    always the one that has served longest ago).
    """
    found = np.empty_like(arrivals)
    for core in range(min(cores, len(arrivals))):
        found[core::cores] = departures(arrivals[core::cores], service)
    return found
