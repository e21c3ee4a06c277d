# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Where do Google's gains on TPUs come from?
#
# Google makes five ads models 1.58 to 2.80 times as fast (arXiv 2501.10546): SparseCores beside
# TensorCores, tables cut in several ways, placement by measured keys. The mean (2.16) stands in the
# paper's abstract, the range in a review of it.
#
# **No model is described there. Ours are inputs, written down before they were run, and no evidence** for
# how much such models gain. What they can show does not depend on the choice: what pipelining alone can
# give, and which part a gain above 2 needs.

# %%
settings = ()  # try ("workload.batch=2048",)

# %%
from analysis.figures import figure

# %% [markdown]
# ## Figure 5: two timelines
#
# Computed, not sketched. Pipelined, the rows of a batch are gathered while the batch before it is in the
# TensorCores, so its gather sees updates up to two batches back.

# %%
timelines = figure("fig_google_timelines").compute(*settings)
timelines

# %%
timelines.table()

# %% [markdown]
# ## Figure 7: layer upon layer
#
# Ours are too much alike: all of them wait for the one chip with the busiest table until tables are placed
# by measured keys. So they neither reach Google's largest gain nor come down to its least.

# %%
layers = figure("fig_google_layers").compute(*settings)
layers

# %%
layers.table()
