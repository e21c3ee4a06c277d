"""The dashboard: a scenario on the screen that answers while its controls move.

Everything that is computed is computed here in plain functions; only `page` knows Streamlit, only
`charts` knows plotly, and only `serving` starts a server.
"""

from analysis.dashboard.choices import Choice
from analysis.dashboard.exporting import exported
from analysis.dashboard.screen import Screen, show

__all__ = ["Choice", "Screen", "exported", "show"]
