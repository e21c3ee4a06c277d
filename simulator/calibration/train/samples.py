"""The samples of a run: keys from a Zipf law or a recorded log, dense features, and labels to learn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from simulator.calibration.measure.channel import Array
from simulator.calibration.train.settings import Model, Settings
from simulator.errors import InputError, Where
from simulator.quantities import FloatArray, IntArray

SCRAMBLE = 0x9E3779B1  # odd: multiplying by it modulo a power of two is one-to-one


@dataclass(frozen=True, eq=False)
class Samples:
    """What one rank reads: `keys` (batches, samples, tables) as global row numbers, `features`, `labels`."""

    keys: Array
    features: Array
    labels: Array


def samples(settings: Settings, rank: int, ranks: int) -> Samples:
    """Return all samples of `rank`: the same for the same settings (whatever the policy), on any machine."""
    return _drawn(replace(settings, policy="serialized", parameters={}), rank, ranks)


@lru_cache(maxsize=4)
def _drawn(settings: Settings, rank: int, ranks: int) -> Samples:
    model, shape = settings.model, (settings.steps, settings.batch)
    random = np.random.default_rng([settings.seed, 2, rank])
    if settings.keys is None:
        local = zipf_keys(model.rows, model.exponent, random.random((*shape, model.tables)))
    else:
        local = _recorded(settings, rank, ranks)
    keys = row_numbers(model, local)
    features = random.standard_normal((*shape, model.features)).astype(np.float32)
    chance = 1.0 / (1.0 + np.exp(-_score(keys, features)))
    labels = (random.random(shape) < chance).astype(np.float32)
    return Samples(keys.astype(np.int32), features, labels[..., None])


def zipf_keys(rows: int, exponent: float, uniform: FloatArray) -> IntArray:
    """Return keys 0 .. rows - 1, key i with probability proportional to (i + 1)^-exponent."""
    return np.searchsorted(_cumulative(rows, exponent), uniform).astype(np.int64)


@lru_cache(maxsize=8)
def _cumulative(rows: int, exponent: float) -> FloatArray:
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -exponent
    total = np.cumsum(weights)
    return np.asarray(total / total[-1])


def row_numbers(model: Model, keys: IntArray) -> IntArray:
    """Return global row numbers of keys (..., tables): hot keys lie scattered, as ids of real tables do."""
    return _scattered(keys, model.rows) + np.arange(model.tables, dtype=np.int64) * model.rows


def _scattered(keys: IntArray, rows: int) -> IntArray:
    """Return a one-to-one scramble of 0 .. rows - 1."""
    return (keys * _coprime(rows)) % rows


@lru_cache(maxsize=64)
def _coprime(rows: int) -> int:
    factor = SCRAMBLE % rows or 1
    while np.gcd(factor, rows) != 1:
        factor += 1
    return factor


def _score(keys: IntArray, features: Array) -> FloatArray:
    """A hidden rule that labels follow: a sign per row, and the first dense features."""
    sign = ((keys * SCRAMBLE >> 13) & 1) * 2.0 - 1.0
    return np.asarray(sign.mean(axis=-1) * 4.0 + features[..., :4].sum(axis=-1) * 0.5)


def _recorded(settings: Settings, rank: int, ranks: int) -> IntArray:
    """Return the rank's share of a recorded log: batch by batch, one key per table and sample.

    Features of the log become tables in their order; keys are taken modulo the rows of a table.
    """
    columns = recorded_columns(str(settings.keys), settings.model.tables)
    needed = settings.steps * settings.batch * ranks
    rows = min(len(column) for column in columns)
    if rows < settings.batch * ranks:
        raise InputError(
            f"has {rows} samples; {settings.batch * ranks} are needed for one batch", Where(settings.keys)
        )
    table = np.stack([column[np.arange(needed) % rows] for column in columns], axis=-1)
    shaped = table.reshape(settings.steps, ranks, settings.batch, settings.model.tables)
    return np.asarray(shaped[:, rank] % settings.model.rows, dtype=np.int64)


def recorded_columns(path: str, tables: int) -> Sequence[IntArray]:
    """Return one column of whole-number keys per table from a log that `recscale keys` can read."""
    from simulator.calibration.train.key_columns import key_columns

    return key_columns(path, tables)
