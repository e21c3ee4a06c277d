"""What can be picked on the dashboard, and the scenario that a choice stands for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from analysis.compare import policy_part
from analysis.dashboard.network import rebuilt, with_bandwidth
from simulator.errors import InputError, did_you_mean
from simulator.hardware import catalog
from simulator.policies import catalog as policies
from simulator.scenario import Scenario, load
from simulator.scenario.overrides import apply_overrides
from simulator.scenario.shipped_files import scenarios_in, shipped_folder

OWN = "as in the scenario"
CONTROL = "the controls"  # what errors name as the place of a value that was set on the screen
GB = 1e9


@dataclass(frozen=True)
class Choice:
    """What the controls say. None, and OWN for names, leave the scenario's own value.

    `hardware` is a server of the catalog; `bandwidth` is bytes/s of one accelerator's way out of its
    fast domain (of one link in a torus); `batch` is per worker; `skew` is the exponent of the keys.
    """

    model: str
    hardware: str = OWN
    policy: str = OWN
    precision: str = OWN
    workers: int | None = None
    bandwidth: float | None = None
    batch: int | None = None
    skew: float | None = None
    micro_batches: int | None = None

    @property
    def scenario(self) -> Scenario:
        """The scenario that the controls describe. Raises InputError for values that it cannot have."""
        return compose(self)

    def on(self, workers: int) -> "Choice":
        """Return the choice on another number of workers."""
        return replace(self, workers=workers)


@cache
def models() -> tuple[str, ...]:
    """Return the names of the shipped scenarios: their paths without the suffix, the smallest one first."""
    folder = shipped_folder()
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in scenarios_in(folder)]
    return tuple(sorted(names, key=lambda name: (name != "quickstart", name)))


@cache
def base(model: str) -> Scenario:
    """Return a shipped scenario. Raises InputError for a name that is none."""
    if model not in models():
        raise InputError(f'no shipped scenario is called "{model}"{did_you_mean(model, models())}')
    return load(shipped_folder() / f"{model}.yaml")


def servers() -> tuple[str, ...]:
    """Return the names of hardware to pick from."""
    return (OWN, *catalog.names("machine"))


def policy_names() -> tuple[str, ...]:
    """Return the names of policies to pick from."""
    return (OWN, *policies.names())


def precisions(choice: Choice) -> tuple[str, ...]:
    """Return the number formats that the chosen accelerator has a rate for."""
    return (OWN, *sorted(on_hardware(choice).cluster.accelerator.peak_flops))


def takes_micro_batches(choice: Choice) -> bool:
    """Whether the chosen policy is one of a number of micro-batches."""
    own = base(choice.model).spec.policy.kind
    return "micro_batches" in policies.taken_by(own if choice.policy == OWN else choice.policy)


def own_skew(model: str) -> float | None:
    """Return the exponent of the keys, or None where they do not follow a law with one."""
    keys = base(model).spec.workload.keys
    return getattr(keys, "exponent", None)


def on_hardware(choice: Choice) -> Scenario:
    """Return the scenario on the chosen hardware, everything else as it is.

    Another server takes the place of the whole cluster: what was fitted to the old one does not hold there.
    """
    scenario = base(choice.model)
    if choice.hardware == OWN:
        return scenario
    machine = catalog.entry("machine", choice.hardware)
    per_host = int(machine["per_host"]["value"])
    hosts = max(1, round(scenario.cluster.ranks / per_host))
    parts = {kind: str(machine[kind]) for kind in ("accelerator", "host", "fabric")}
    return rebuilt(scenario, cluster={**parts, "per_host": per_host, "hosts": hosts})


def compose(choice: Choice) -> Scenario:
    """Return the scenario that `choice` describes. Raises InputError for values that it cannot have."""
    scenario = on_hardware(choice)
    if choice.workers is not None and choice.workers != scenario.cluster.ranks:
        scenario = scenario.with_workers(choice.workers)
    if choice.policy != OWN:
        scenario = scenario.with_policy(policy_part(scenario, choice.policy, choice.micro_batches))
    settings = list(_settings(choice))
    if settings:
        scenario = Scenario.of(apply_overrides(scenario.document, settings, CONTROL))
    return scenario if choice.bandwidth is None else with_bandwidth(scenario, choice.bandwidth)


def _settings(choice: Choice) -> Iterator[str]:
    if choice.batch is not None:
        yield f"workload.batch={choice.batch}"
    if choice.skew is not None:
        yield f"workload.keys.exponent={choice.skew!r}"
    if choice.precision != OWN:
        yield f"workload.model.precision={choice.precision}"
    if choice.micro_batches is not None and takes_micro_batches(choice):
        yield f"policy.micro_batches={choice.micro_batches}"


def as_data(scenario: Scenario) -> dict[str, Any]:
    """Return the scenario as its file would say it."""
    return dict(scenario.document.data)
