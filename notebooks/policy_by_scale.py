# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Which policy is worth building, at which scale?
#
# A policy that hides the all-to-all costs weeks of work. Below some number of workers there is little to
# hide.

# %%
scenario = "nestpipe/npu.yaml"
policies = ("serialized", "stale_prefetch", "dual_buffer", "frozen_window", "nestpipe")
workers = (64, 128, 256, 512, 1536)
worth_it = 1.5  # a policy is worth building if it makes a step so many times as fast
settings = []  # try ["workload.model.layers=4"]

# %%
import pandas as pd

from analysis.compare import Request, compare
from analysis.figures import Keys, lines
from simulator.scenario import load
from simulator.scenario.shipped_files import shipped_folder

# %% [markdown]
# The vector engine solves the recurrence: exact where stages share nothing, an estimate elsewhere.
# `recscale compare` confirms single points event by event.

# %%
request = Request(policies, workers, engine="vector")
rows = [row.to_dict() for row in compare([load(shipped_folder() / scenario, settings)], request)]
table = pd.DataFrame(rows)
table.pivot(index="policy", columns="workers", values="step_ms").round(0)

# %%
lines(rows, Keys("workers", "policy", "speedup"), "Speed-up over serialized", f"{scenario}, vector engine")

# %% [markdown]
# ## What to build
#
# Of the policies that train as if synchronous (no staleness), the fastest that is worth it; else nothing.

# %%
fresh = table[(table.staleness_declared_steps == 0) & (table.speedup >= worth_it)]
best = fresh.sort_values("speedup").groupby("workers").last()
best[["policy", "speedup", "step_ms"]].reindex(workers).fillna({"policy": "nothing"}).round(2)

# %% [markdown]
# What cannot run, and what lies outside of what the scenario was fitted on:

# %%
sorted({note for row in rows for note in row["notes"] if note.startswith(("beyond data", "cannot run"))})
