"""The kinds of files that can be imported, by the names that people give them."""

from collections.abc import Mapping

from simulator.calibration.imports.collective_rows import Log, Reader
from simulator.calibration.imports.hccl_test import read_hccl_test
from simulator.calibration.imports.nccl_tests import read_nccl_tests
from simulator.calibration.imports.nccl_tests_json import is_json, read_json
from simulator.calibration.imports.param_comms import read_param_comms


def read_any_nccl_tests(path: str) -> Log:
    """Return the tables of a log, or of a JSON report, of nccl-tests or rccl-tests."""
    return read_json(path) if is_json(path) else read_nccl_tests(path)


COLLECTIVES: Mapping[str, Reader] = {
    "nccl-tests": read_any_nccl_tests,
    "rccl-tests": read_any_nccl_tests,
    "hccl-test": read_hccl_test,
    "param-comms": read_param_comms,
}
