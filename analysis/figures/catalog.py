"""All figures by name: every module of this package that is called `fig_...` holds one."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module

import analysis.figures
from analysis.figures.frame import Figure
from simulator.errors import InputError, did_you_mean


def figures() -> Mapping[str, Figure]:
    """Return all figures, by name, in order."""
    names = sorted(one.name for one in pkgutil.iter_modules(analysis.figures.__path__))
    modules = [import_module(f"analysis.figures.{name}") for name in names if name.startswith("fig_")]
    return {module.FIGURE.name: module.FIGURE for module in modules}


def figure(name: str) -> Figure:
    """Return the figure called `name`. Raises InputError, with the nearest name, when there is none."""
    known = figures()
    if name not in known:
        raise InputError(f'no figure is called "{name}"{did_you_mean(name, known)}')
    return known[name]
