# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # How large a cluster for a deadline?
#
# Which accelerators, how many, under which policy, to train on so many samples in time: the cheapest plan
# for several deadlines. The settings are a planning question, as for `recscale plan`. Prices are examples;
# put in your own.

# %%
deadlines = ("12 h", "36 h", "96 h")
samples = 1e13
question = """
scenario: model.yaml
target: {{samples: {samples}, within: {within}}}
hardware:
  - {{name: a100, workers: [16, 32, 64, 128, 256], money: {{price: 2.0 USD/h, power: 650 W}}}}
  - name: h100
    cluster: {{accelerator: h100, per_host: 8, hosts: 2, fabric: dgx_h100}}
    workers: [16, 32, 64, 128]
    money: {{price: 3.5 USD/h, power: 1050 W}}
policies: [{{kind: serialized}}, {{kind: dual_buffer}}, {{kind: nestpipe, micro_batches: 4}}]
sharding: [{{kind: row_wise, tier: hbm}}]
"""

# %%
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copy
from tempfile import mkdtemp

import pandas as pd

from analysis.plan import answer, read_question
from simulator.scenario.shipped_files import shipped_folder

# %%
folder = Path(mkdtemp())
copy(shipped_folder() / "planning" / "model.yaml", folder)
answers = {}
for within in deadlines:
    file = folder / "deadline.plan.yaml"
    file.write_text(question.format(samples=samples, within=within), encoding="utf-8")
    with ThreadPoolExecutor(1) as executor:
        answers[within] = answer(read_question(file), executor)

# %% [markdown]
# ## What nothing beats
#
# All plans that keep the deadline and that no other one beats in hours, cost and energy at once.

# %%
pd.DataFrame(
    [
        {"within": within, **plan.to_dict(), "policy": plan.record["policy"]}
        for within, one in answers.items()
        for plan in one.plans
    ]
)[["within", "hardware", "workers", "policy", "hours", "usd", "kwh", "step_ms"]].round(1)

# %% [markdown]
# ## The cheapest, and what would make it better
#
# What 10 % more of one thing would save of its step, run event by event; what is not listed changes
# nothing.

# %%
pd.DataFrame(
    [
        {
            "within": within,
            "improve": gain.parameter,
            "from": gain.value,
            "saves_percent": 100 * gain.saved_share,
        }
        for within, one in answers.items()
        for gain in one.gains[:3]
    ]
).round(1)

# %% [markdown]
# A deadline without plans is not an error: `changes` names the smallest changes that would make it
# feasible.

# %%
{within: [change.what for change in one.changes[:3]] for within, one in answers.items()}
