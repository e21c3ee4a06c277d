"""What an accelerator costs per hour and draws: a plain price, or the parts of its total cost of ownership.

The parts are those that Google's ads training counts: capital over the life of the machine, processors,
memory and tray beside the accelerator, and power.
"""

from typing import Annotated, Self

from pydantic import Field, model_validator

from analysis.times import HOUR_S
from simulator.scenario.base import Spec
from simulator.scenario.fields import EnergyPrice, Fraction, MoneyRate, Power, Price, Time


class OwnershipSpec(Spec):
    """Owning one accelerator with its share of the server.

    Prices are per accelerator: the chip, its part of processors, memory, tray and network. They are
    spread evenly over `lifetime`, of which the share `utilization` is used for training. Power is that
    of the accelerator with its part of the server, times `overhead` for cooling.
    """

    accelerator: Price
    cpu: Price
    ram: Price
    tray: Price
    network: Price
    lifetime: Time
    utilization: Fraction
    power: Power
    overhead: Annotated[float, Field(ge=1.0, le=3.0)]
    electricity: EnergyPrice

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.lifetime <= 0 or self.utilization <= 0:
            raise ValueError("lifetime and utilization must be above 0")
        return self

    @property
    def usd_per_hour(self) -> float:
        """USD per hour of use: capital by used hours, and the electricity of one hour."""
        capital = self.accelerator + self.cpu + self.ram + self.tray + self.network
        used_hours = self.lifetime * self.utilization / HOUR_S
        return capital / used_hours + self.watts * HOUR_S * self.electricity

    @property
    def watts(self) -> float:
        """What the meter sees, W."""
        return self.power * self.overhead


class MoneySpec(Spec):
    """What one accelerator costs and draws: a price with a power, or the parts of owning it."""

    price: MoneyRate | None = None
    power: Power | None = None
    ownership: OwnershipSpec | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.ownership is not None and (self.price is not None or self.power is not None):
            raise ValueError("ownership contains price and power; give one or the other")
        return self

    @property
    def usd_per_hour(self) -> float | None:
        """USD per accelerator and hour; None leaves it to the catalog."""
        if self.ownership is not None:
            return self.ownership.usd_per_hour
        return None if self.price is None else self.price * HOUR_S

    @property
    def watts(self) -> float | None:
        """Watts per accelerator; None leaves it to the catalog."""
        return self.ownership.watts if self.ownership is not None else self.power
