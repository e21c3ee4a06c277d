"""The `cluster.measured` part of a scenario: numbers of the accelerator taken from own measurements."""

from dataclasses import replace
from pathlib import Path

from simulator.costs.fitted_rates import bytes_rate
from simulator.errors import InputError
from simulator.hardware import Accelerator
from simulator.scenario.base import Spec
from simulator.scenario.places import inside
from simulator.scenario.source import read_document


class MeasuredSpec(Spec):
    """Primitives of a file that `recscale calibrate fit --measured` wrote, in the scenario's folder.

    `memory_copy` copies bytes within the memory: it reads and writes each, so the bandwidth is twice its
    rate, and its efficiency 1. `host_copy` copies between host and device.
    """

    file: str
    memory_copy: str | None = None
    host_copy: str | None = None

    def applied(self, accelerator: Accelerator, folder: Path) -> Accelerator:
        """Return the accelerator with the measured numbers.

        Raises InputError for a file that cannot be read, then for one of which nothing is used, and for what
        it lacks.
        """
        path = inside(folder, self.file)
        data = read_document(path).data
        if self.memory_copy is None and self.host_copy is None:
            named = "no primitive of it is named; name one under memory_copy or host_copy"
            raise InputError(f"nothing of measured.file is used: {named}")
        if self.memory_copy is not None:
            rate = 2 * bytes_rate(data, self.memory_copy, str(path))
            accelerator = replace(accelerator, hbm_bandwidth=rate, memory_efficiency=1.0)
        if self.host_copy is not None:
            accelerator = replace(
                accelerator, host_link_bandwidth=bytes_rate(data, self.host_copy, str(path))
            )
        return accelerator
