"""What `docs/validation.md` says around its tables."""

TITLE = """\
# Validation: what was predicted, and how wrong it was

This page is generated: `python -m analysis.validation` in the checkout writes it, and a test fails when it
is not up to date. The figures are those of `analysis/published.csv`, where each has its source and a note.

Every published figure has one role: {roles}.
Only predictions can be evidence. Confidence: {confidence}.
All NestPipe figures (arXiv 2604.06956) were taken from public summaries of the paper, not from the paper;
those of Google's TPUs (arXiv 2501.10546) from a review of it. Google's models are not public: the figures
marked G are gates and orderings on five models of our own (docs/decisions/0009-five-models-for-google.md).

**In short: this page is a check of structure and no evidence that steps are predicted well.** {count} figures
share no number with a fit and were simulated ({clean}). The bounds among them are kept, the others
are missed by far. All other predictions contain numbers that were used for the fit, or repeat them.
Evidence stands on three other pages: [training steps](validation_training.md), [products, traces, local
runs](validation_measured.md), [collectives](collectives.md)."""

COLUMNS = """\
*Error* is simulated over published, less 1, in per cent. The *sum* adds compute, lookup and all-to-all of
the serialized run and leaves out what a policy hides by rule of thumb: prefetching hides the lookup, N
micro-batches all but 1/N of the all-to-all, groups of workers what T6b over T2b says. A row in which the
sum does as well is no evidence for the simulator; `+` marks the rows in which the sum is off by at least
two points more. `*`: more workers than the network was fitted on, so an extrapolation. Times in ms,
throughput in thousands of samples per second, speed-up as a factor, the rest in %."""

CLEAN = """\
## Clean predictions, worst first

These figures are no part of what was fitted or chosen, and contain no such figure."""

SHARED = """\
## Predictions that share numbers with the fit, worst first

The last column names the figures, used for a fit or a choice, that a row contains or repeats. A small error
here says mostly that the parts add up as published."""

WORTH = """\
What this is worth:

- **The plain sum does nearly as well as the simulator for every step of NestPipe's own policies, and better
  for two-dimensional sparse parallelism.** The system was published in parts that add up; whoever knows the
  parts knows the steps. What a sum cannot give (when hiding stops, which stage sets the period, what a
  buffer is worth) is tested in `tests/published`; there are no published figures to compare it with.
- T12b is nearer than the sum because splitting a batch repeats hot keys. How much was fitted (T19a), and
  T13d says that the all-to-all of NestPipe's own run did not grow like that.
- The all-to-all at 1,536 workers follows from those at 128 and 512, and no fit aims at it. But the three are
  not independent: the one at 512 was computed from steps at 1,536 (T8a, T8b, T8c). It is known to 18 ms,
  which makes {low:,.0f} to {high:,.0f} ms at 1,536. Published are 1,181 (T8d), 1,185 (T13d) and 1,208 (T2b).
- Under prefetching the published runs still show 23 to 36 ms of lookup, the simulated ones 2 ms or less.
  Nothing in the model stands for it. It is 1 to 2 % of a step and the largest relative error here.
- Micro-batches of 16 samples leave 25 % of the all-to-all exposed in the paper and 3 % here (T19b).
  Compute is taken to be as efficient on 16 samples as on 512, which is surely too kind; the figure itself
  has one source.
- T20 is the one figure of regrouped samples. It comes from `nestpipe/clustering.yaml`, on other keys than
  the rest. 32 times the published figure is less than the all-to-all of the whole batch (T13d), which no
  regrouping can do: it must come from another setting. That it misses by less than the sum means nothing.
- Two-dimensional sparse parallelism (T6a, T6c, T7) rests on assumptions. Copies are averaged after every
  step, all rows that any of them has used. That takes {averaging} ms at 1,536 workers and {averaging_few} at
  128, dense all-reduce included: most of these rows were used by other copies, and host memory has to give
  them and take them back. The published parts add up to the published step and leave no time for it, so
  that system averages more seldom, other rows, or beside something else. With averaging after every
  hundredth step only, the error would be {seldom} % at 1,536 workers and {seldom_few} % at 128. The
  unexplained growth of the lookup is taken to follow the size of the job and not of the group, and four
  groups are taken at 128 workers, too. If all of the growth followed the group, the step at 1,536 workers
  would take {by_group} ms where 4,914 are published; with half of it, the errors would be {half} and
  {half_few} %. The published parts
  leave less lookup with groups than without. Here it is more: fewer workers share an owner, so fewer of
  their keys coincide."""

FITS = """\
## Fits

One fit per system. The scenario files hold the values, rounded, and a test repeats the fits. *From* and
*to* is what the stated doubt about the targets allows (a printed decimal place, the range at 512
workers), all else taken as right; that is no interval for a prediction. Each fit has as many targets as
numbers, so the targets are met by construction: that they are says that the files hold what was fitted,
and nothing else. The target of `workload.keys.exponent` and of `workload.histories.group` is T19a over
T13d: two models of the keys, independent ones or groups of samples that share some, explain one figure,
and at most one of them holds.

The second table lists all that is used up: the targets, the figures behind them, and those on which a
number was chosen (shape of the model, micro-batches, groups). Only the targets are met by construction."""

LOOKUP = """\
`unexplained_host_time` stands for a growth of the lookup with the size of the job that no resource of
ours explains. It is held half in route, half in retrieve, and uses no network card and no memory. The GPU
system needs three times the value of the NPU system to reach its one figure (T23a). So the number does
not carry over to other systems, and that scenario is no evidence at all."""

INPUTS = """\
## Inputs

Compute follows from the shape of an HSTU and a share of the peak that was published for another one (I1).
NestPipe's default shape is not known; of the published ranges one shape was chosen because it comes out
near 1,715 ms, and it is not the only one that does. Compute is no evidence (T2c has the role fit).

The share itself is an **assumed convention**. Published shares usually count attention in full and
recomputation not at all; the scenario puts this one on causal attention with every layer recomputed. The two
differences nearly cancel: counted the usual way, compute would take {usual} instead of {compute} ms."""
