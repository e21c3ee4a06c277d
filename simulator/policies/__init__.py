"""In what order, with what overlap and what buffers: one module per policy, `catalog` finds them."""
