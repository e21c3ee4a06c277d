"""Parameters of measured primitives: least squares of logarithms, intervals by bootstrap, errors held out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from simulator.calibration.fit_forms import Form, FormParameter, Interpolated, Segmented, forms_for
from simulator.calibration.fit_table import Series
from simulator.errors import InputError
from simulator.quantities import FloatArray
from simulator.quantities.statistics import COVERAGE, median_and_p90

RESAMPLES = 100
FOLDS = 4
SOFT = 0.05  # relative errors beyond this count less than their square (soft L1)
EDGE = 1e-3  # of the searched range in logarithms: a value so near to a bound was decided by it


@dataclass(frozen=True)
class HeldOutError:
    """|predicted / measured - 1| of measurements kept from the fit: median, 90th percentile, rows."""

    median: float
    p90: float
    rows: int


@dataclass(frozen=True)
class FittedSeries:
    """A form fitted to a series: `values` and `intervals` by name of the parameter, in base units.

    `intervals` hold the true value in `COVERAGE` of cases, if errors are as they were seen. Parameters
    in `at_bound` are not determined by the measurements: the part they stand for is nothing beside
    the rest.
    """

    series: Series
    form: Form
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    held_out: HeldOutError
    residual: float
    at_bound: tuple[str, ...] = ()

    def parameters(self) -> Sequence[FormParameter]:
        """Return the parameters of the form."""
        return self.form.parameters(self.series)

    def seconds(self, amounts: Mapping[str, FloatArray]) -> FloatArray:
        """Return the times that the fit gives for `amounts`, arrays of shape (rows,) by name.

        Raises InputError for amounts other than those of the series.
        """
        if set(amounts) != set(self.series.amounts):
            raise InputError(f"{self.series.name} is fitted by {', '.join(self.series.amounts)}")
        asked = {name: np.asarray(amounts[name], dtype=np.float64) for name in self.series.amounts}
        values = np.array(list(self.values.values()))
        if isinstance(self.form, Segmented | Interpolated):
            return Segmented.at(self.form.knots(self.series), values, next(iter(asked.values())))
        like = Series(self.series.name, asked, np.ones(len(next(iter(asked.values())))))
        return self.form.seconds(values, like)


def fit_series(series: Series, form: Form, resamples: int = RESAMPLES) -> FittedSeries:
    """Return `form` fitted to `series`, with intervals of `COVERAGE` from `resamples` bootstrap fits.

    Errors are drawn again from those seen, by a generator keyed with the name of the series, and widened
    by the parameters used and by Student's law. Points that are interpolated have no errors of their own:
    their intervals are what neighbours miss them by. Raises InputError for fewer measurements than
    parameters.
    """
    parameters = form.parameters(series)
    if len(series.seconds) < len(parameters):
        raise InputError(
            f"{series.name}: {len(parameters)} parameters need more than {len(series.seconds)} rows"
        )
    best = _least_squares(series, form, form.start(series))
    missed = np.concatenate(_missed(series, form))
    if isinstance(form, Interpolated) and missed.size:
        again, errors = best * np.exp(missed)[:, None], missed.size - 1
    else:
        again, errors = _bootstrap(series, form, best, resamples), len(series.seconds) - len(best)
    names = [one.name for one in parameters]
    return FittedSeries(
        series,
        form,
        dict(zip(names, best.tolist(), strict=True)),
        dict(zip(names, _intervals(best, again, _student(errors)), strict=True)),
        _summary(missed),
        float(np.median(np.abs(form.seconds(best, series) / series.seconds - 1))),
        tuple(one.name for one, value in zip(parameters, best, strict=True) if _at_bound(one, value)),
    )


def fit_all(series: Series, resamples: int = RESAMPLES) -> tuple[FittedSeries, ...]:
    """Return every form that suits the series, the one with the least error on what was held out first.

    The error held out of the first is that of choosing as well: each part is predicted by the form that was
    best on the other parts.
    """
    fits = [fit_series(series, form, resamples) for form in forms_for(series)]
    ordered = sorted(fits, key=lambda one: (one.held_out.median, len(one.values)))
    chosen = _summary(np.concatenate(_chosen([_missed(series, one.form) for one in ordered])))
    return (replace(ordered[0], held_out=chosen), *ordered[1:])


def _chosen(misses: Sequence[Sequence[FloatArray]]) -> list[FloatArray]:
    """Return the misses of each part under the form, of `misses`, that missed the other parts least."""
    found = [np.empty(0)]
    for fold in range(len(misses[0])):
        others = [np.concatenate([*one[:fold], *one[fold + 1 :], np.empty(0)]) for one in misses]
        errors = [_summary(one).median for one in others]
        best = int(np.nanargmin(errors)) if not np.all(np.isnan(errors)) else 0
        found.append(misses[best][fold])
    return found


def held_out(series: Series, form: Form) -> HeldOutError:
    """Return the errors on each of `FOLDS` interleaved parts, predicted from the others."""
    return _summary(np.concatenate(_missed(series, form)))


def _missed(series: Series, form: Form) -> list[FloatArray]:
    """Return log(measured / predicted) of each part that could be held out; of others nothing, shape (0,)."""
    folds = max(2, min(FOLDS, len(series.seconds) // 2))
    missed = []
    for fold in range(folds):
        hidden = _fold_of(series, folds) == fold
        known = series.rows(~hidden)
        if hidden.any() and len(known.seconds) >= len(form.parameters(known)) and _varied(known):
            fitted = FittedSeries(known, form, _named(known, form), {}, _summary(np.empty(0)), 0.0)
            missed.append(np.log(series.seconds[hidden] / fitted.seconds(series.rows(hidden).amounts)))
        else:
            missed.append(np.empty(0))
    return missed


def _summary(missed: FloatArray) -> HeldOutError:
    if not missed.size:
        return HeldOutError(float("nan"), float("nan"), 0)
    errors = np.abs(np.expm1(-missed))
    return HeldOutError(*median_and_p90(errors))


def _fold_of(series: Series, folds: int) -> FloatArray:
    """Return the fold of each row: repeats of the same amounts stay together."""
    _, place = np.unique(np.stack(list(series.amounts.values())), axis=1, return_inverse=True)
    return np.asarray(place.reshape(-1) % folds)


def _varied(series: Series) -> bool:
    return all(len(np.unique(values)) > 1 for values in series.amounts.values())


def _named(series: Series, form: Form) -> dict[str, float]:
    best = _least_squares(series, form, form.start(series))
    names = [one.name for one in form.parameters(series)]
    return dict(zip(names, best.tolist(), strict=True))


def _least_squares(series: Series, form: Form, start: FloatArray) -> FloatArray:
    """Return the values with the least soft square of logarithms of fitted over measured."""
    from scipy.optimize import least_squares

    if isinstance(form, Interpolated):
        return start
    parameters = form.parameters(series)
    low = np.log([one.low for one in parameters])
    high = np.log([one.high for one in parameters])
    measured = np.log(series.seconds)

    def misses(logs: FloatArray) -> FloatArray:
        return np.asarray(np.log(form.seconds(np.exp(logs), series)) - measured)

    begin = np.clip(np.log(start), low + EDGE, high - EDGE)
    found = least_squares(
        misses, begin, bounds=(low, high), loss="soft_l1", f_scale=SOFT, x_scale="jac", ftol=1e-7, xtol=1e-7
    )
    return np.asarray(np.exp(found.x))


def _bootstrap(series: Series, form: Form, best: FloatArray, resamples: int) -> FloatArray:
    """Return fits to times with errors drawn again, shape (resamples, parameters)."""
    generator = np.random.default_rng(crc32(f"{series.name} {form.name}".encode()))
    fitted = form.seconds(best, series)
    errors = np.log(series.seconds / fitted)
    free = max(len(errors) - len(best), 1)
    errors = (errors - errors.mean()) * np.sqrt(len(errors) / free)
    drawn = generator.integers(len(errors), size=(resamples, len(errors)))
    times = (series.with_seconds(fitted * np.exp(errors[places])) for places in drawn)
    return np.array([_least_squares(again, form, best) for again in times])


def _student(errors: int) -> float:
    """Return how much wider an interval is when its width was found from so few free errors."""
    from scipy.stats import norm, t

    upper = (1 + COVERAGE) / 2
    return float(t.ppf(upper, max(errors, 1)) / norm.ppf(upper))


def _intervals(best: FloatArray, again: FloatArray, wider: float) -> list[tuple[float, float]]:
    """Return the middle `COVERAGE` of the bootstrap fits, `wider` in logarithms, the fit always inside."""
    tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    low, high = best * (np.quantile(again, tails, axis=0) / best) ** wider
    return list(zip(np.minimum(low, best).tolist(), np.maximum(high, best).tolist(), strict=True))


def _at_bound(parameter: FormParameter, value: float) -> bool:
    share = np.log(value / parameter.low) / np.log(parameter.high / parameter.low)
    return not EDGE < share < 1 - EDGE
