"""What all parts of a scenario file have in common."""

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """A part of a scenario file: unknown keys are refused, values do not change after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)
