# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # When does more network bandwidth pay?
#
# Faster network cards help a policy that waits for them, and only as long as it does.

# %%
scenario = "nestpipe/npu.yaml"
workers = 512
gigabytes_per_second = (6.25, 12.5, 25, 50, 100)  # per accelerator; each twice the one before
policies = ("serialized", "dual_buffer", "frozen_window", "nestpipe")
price_of_doubling = 0.04  # what twice the bandwidth adds to the price of the cluster
settings = []  # try ["workload.model.sequence=512"]

# %%
import pandas as pd

from analysis.compare import Request, compare, policy_part
from analysis.explain import explain
from analysis.figures import Keys, lines
from simulator.scenario import load
from simulator.scenario.shipped_files import shipped_folder

# %%
base = load(shipped_folder() / scenario, settings).with_workers(workers)
rows = [
    {"GB_per_s": rate, **row.to_dict()}
    for rate in gigabytes_per_second
    for row in compare(
        [base.with_overrides([f"cluster.fabric.between={rate} GB/s"])], Request(policies, engine="vector")
    )
]
lines(rows, Keys("GB_per_s", "policy", "step_ms"), "Step by bandwidth", f"{scenario}, {workers:,} workers")

# %%
steps = pd.DataFrame(rows).pivot(index="GB_per_s", columns="policy", values="step_ms")
steps.round(0)

# %% [markdown]
# ## What each doubling is worth
#
# Samples per second gained by it, in per cent; it pays where the cluster's price grows by less.

# %%
gained = (steps.shift() / steps - 1).dropna()
(100 * gained).round(1)

# %%
gained.gt(price_of_doubling)

# %% [markdown]
# ## Why it stops
#
# What the critical cycle of each policy consists of at the scenario's own bandwidth, in per cent.

# %%
shares = {one: explain(base.with_policy(policy_part(base, one, None))).resources for one in policies}
(100 * pd.DataFrame(shares).fillna(0)).round(1)
