"""The page itself: controls at the side, what comes of them beside; nothing is computed here."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from analysis.dashboard import charts, choices
from analysis.dashboard.choices import GB, Choice
from analysis.dashboard.exporting import exported
from analysis.dashboard.network import way_out
from analysis.dashboard.screen import Screen, show
from analysis.dashboard.sweeps import Sweep, load_sweep, table_of
from simulator.errors import RecscaleError, printable
from simulator.units import format_bytes

PLOT: dict[str, Any] = {"displayModeBar": False, "scrollZoom": False}


def main() -> None:
    """Draw the page; whatever cannot be is said in one line."""
    st.set_page_config(page_title="recscale", layout="wide")
    st.title("recscale")
    scenario, sweep = st.tabs(["Scenario", "Sweep"])
    with scenario:
        _safely(lambda: _scenario(show(_controls())))
    with sweep:
        _safely(_sweep)


def _safely(draw: Callable[[], None]) -> None:
    """Draw a part; say in one line what is wrong with the input, or that a defect of ours was met."""
    try:
        draw()
    except RecscaleError as error:
        st.error(_plain(problem(error)))
    except MemoryError:
        st.error("Not enough memory for a run of this size; take fewer batches or workers.")
    except ArithmeticError as error:
        st.error(_plain(f"a defect, please report it: {type(error).__name__}: {error}"))


def problem(error: RecscaleError) -> str:
    """Return an error as one line; where in which file is left out, since nobody has written it."""
    place = error.where.path or (error.where.file or "").removeprefix("--")
    return printable(f"{place}: {error.problem}" if place else error.problem)


def _plain(text: str) -> str:
    """Return text that Markdown leaves as it is."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>()#+-.!|$:~" else letter for letter in text)


def _controls() -> Choice:
    side = st.sidebar
    model = side.selectbox("Scenario", choices.models())
    hardware = side.selectbox("Hardware", choices.servers(), key=f"hardware {model}")
    chosen = Choice(model, hardware)
    policy = side.selectbox("Policy", choices.policy_names(), key=f"policy {model}")
    chosen = Choice(model, hardware, policy)
    formats = choices.precisions(chosen)
    precision = side.selectbox("Precision", formats, key=f"precision {model} {hardware}")
    return Choice(model, hardware, policy, precision, **_numbers(chosen))


def _numbers(chosen: Choice) -> dict[str, Any]:
    """Return what the numeric controls say; they start at the scenario's own values."""
    side, own = st.sidebar, choices.on_hardware(chosen)
    key = f"{chosen.model} {chosen.hardware}"
    workers = side.number_input(
        "Workers", 1, 1 << 20, own.cluster.ranks, own.cluster.per_host, key=f"workers {key}"
    )
    batch = side.number_input("Batch per worker", 1, 1 << 30, own.spec.workload.batch, key=f"batch {key}")
    return {
        "workers": int(workers),
        "batch": int(batch) if batch != own.spec.workload.batch else None,
        "bandwidth": _bandwidth(chosen),
        "skew": _skew(chosen),
        "micro_batches": _micro_batches(chosen),
    }


def _bandwidth(chosen: Choice) -> float | None:
    way = way_out(choices.on_hardware(chosen))
    if way is None:
        st.sidebar.caption("Bandwidth: this fabric has no single one to move.")
        return None
    own = way.bandwidth / GB
    key = f"bandwidth {chosen.model} {chosen.hardware}"
    moved = st.sidebar.number_input(
        "Bandwidth, GB/s", 0.001, 1e5, own, own / 4, "%.4g", key, f"{way.words}, per direction"
    )
    return None if moved == own else float(moved) * GB


def _skew(chosen: Choice) -> float | None:
    own = choices.own_skew(chosen.model)
    if own is None:
        st.sidebar.caption("Skew: the keys of this scenario follow no law with an exponent.")
        return None
    moved = st.sidebar.slider("Skew of the keys", 0.0, 2.0, float(own), 0.01, key=f"skew {chosen.model}")
    return None if moved == own else float(moved)


def _micro_batches(chosen: Choice) -> int | None:
    if not choices.takes_micro_batches(chosen):
        return None
    own = choices.compose(chosen).spec.policy.model_dump().get("micro_batches", 8)
    key = f"micro-batches {chosen.model} {chosen.policy}"
    moved = int(st.sidebar.number_input("Micro-batches", 1, 4096, int(own), key=key))
    return None if moved == own else moved


def _scenario(screen: Screen) -> None:
    report = screen.report
    _numbers_of(screen)
    st.subheader("Step")
    _plot(charts.breakdown(screen.rows), "breakdown")
    st.caption(f"Bottleneck: {_plain(', '.join(report.bottleneck[:6]))}")
    st.subheader("Timeline")
    _plot(charts.timeline(screen.schedule), "timeline")
    st.caption(_plain(charts.HATCHING))
    name = f"{screen.choice.model.rpartition('/')[2]}.yaml"
    text = exported(screen)
    st.download_button("Scenario file of this screen", text, name, "application/yaml", on_click="ignore")
    with st.expander("What this rests on"):
        for note in screen.notes:
            st.markdown(f"- {_plain(note)}")
    left, right = st.columns(2)
    with left:
        st.subheader("Scaling")
        _plot(charts.efficiency(screen.sizes), "efficiency")
    with right:
        st.subheader("Cost")
        _cost(screen)


def _numbers_of(screen: Screen) -> None:
    report = screen.report
    cost = report.cost or {}
    usd, joules = cost.get("usd_per_million_samples"), cost.get("joules_per_sample")
    told = {
        "Step": f"{report.step_ms['mean']:,.4g} ms",
        "Samples/s": f"{report.throughput_samples_per_s:,.0f}",
        "Over serialized": "-" if screen.speedup is None else f"{screen.speedup:.2f}×",
        "USD per million": "-" if usd is None else f"{usd:.4g}",
        "J per sample": "-" if joules is None else f"{joules:.4g}",
        "Memory": format_bytes(report.peak_memory_bytes["hbm"]),
    }
    with st.container(horizontal=True, gap="medium"):
        for name, value in told.items():
            st.metric(name, value, width="content")


def _cost(screen: Screen) -> None:
    figure = charts.cost(screen.sizes)
    if figure is None:
        st.caption("No price is known for this hardware.")
    else:
        _plot(figure, "cost")


def _plot(figure: Any, key: str) -> None:
    st.plotly_chart(figure, config=PLOT, key=key)


def _sweep() -> None:
    """Load a sweep when asked to; it stays while controls move."""
    with st.form("sweep folder", border=False):
        typed = st.text_input("Folder of a sweep", help="what recscale sweep --out wrote")
        asked = st.form_submit_button("Load")
    if asked and typed.strip():
        st.session_state.pop("sweep", None)
        st.session_state["sweep"] = load_sweep(typed)
    if "sweep" in st.session_state:
        _show_sweep(st.session_state["sweep"])


def _show_sweep(sweep: Sweep) -> None:
    st.caption(sweep.summary)
    for place, (name, rows) in enumerate(sweep.scenarios.items()):
        st.subheader(_plain(name))
        _plot(charts.efficiency(charts.sizes_of(rows)), f"sweep {place}")
        st.dataframe(table_of(rows), hide_index=True)
    for reason in sweep.reasons[:10]:
        st.markdown(f"- {_plain(reason)}")


if __name__ == "__main__":
    main()
