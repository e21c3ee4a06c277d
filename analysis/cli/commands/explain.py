"""`recscale explain`: the bottleneck in words."""

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from analysis.cli.options import Format, FormatName, ScenarioOptions, takes


@dataclass(frozen=True)
class ExplainOptions(ScenarioOptions):
    """What `explain` takes."""

    verbose: Annotated[bool, typer.Option("--verbose", help="List every stage of the cycle.")] = False
    format: FormatName = Format.table


@takes(ExplainOptions)
def explain(options: ExplainOptions) -> None:
    """Say what sets the pace of a step.

    Names the critical cycle of stages, the resource that binds, and what each parameter would change:
    the scenario is run again on the event engine with each of them halved and doubled.
    """
    from analysis.cli.output import Answer
    from analysis.cli.views.explanation import draw_explanation
    from analysis.explain import explain as explained
    from simulator.scenario.simulate import checked_memory

    scenario = options.load()
    checked_memory(scenario)
    answer = explained(scenario)
    rows = [asdict(one) for one in answer.sensitivities]
    data = answer.to_dict()
    Answer(data, rows, lambda console: draw_explanation(answer, options.verbose, console)).show(
        options.format
    )
