"""The screen as a scenario file: what it says is what was computed, so that anybody can run it again."""

from analysis.dashboard.choices import as_data
from analysis.dashboard.screen import ENGINE, Screen

WIDE = 110


def exported(screen: Screen) -> str:
    """Return the YAML of the scenario on the screen, with a head that says how to run it.

    Running it with the engine named there gives the same hash and the same step.
    """
    import yaml

    scenario = screen.run.scenario
    text = yaml.safe_dump(as_data(scenario), sort_keys=False, width=WIDE, allow_unicode=True)
    return f"{_head(screen)}{text}"


def _head(screen: Screen) -> str:
    report, scenario = screen.report, screen.run.scenario
    lines = [
        f"From the dashboard: the shipped scenario {screen.choice.model}, changed. To get the same step:",
        f"  recscale run THIS_FILE --engine {ENGINE}",
        f"It was {report.step_ms['mean']:.6f} ms (hash {scenario.hash}). Without --engine, stages that run",
        "at the same time share what they use, and the step is that of a run, not an estimate.",
    ]
    if files(as_data(scenario)):
        folder = f"{screen.choice.model.rpartition('/')[0] or '.'}"
        lines.append(f'It reads files: keep it in the folder "{folder}" of what `recscale init` writes.')
    return "".join(f"# {line}\n" for line in lines) + "\n"


def files(part: object) -> list[str]:
    """Return the names of files that a scenario reads."""
    if isinstance(part, dict):
        own = [str(value) for name, value in part.items() if name == "file"]
        return own + [name for value in part.values() for name in files(value)]
    if isinstance(part, list):
        return [name for value in part for name in files(value)]
    return []
