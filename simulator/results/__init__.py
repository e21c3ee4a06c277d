"""What a run says: timeline, breakdown, bottleneck, staleness, memory, report."""
