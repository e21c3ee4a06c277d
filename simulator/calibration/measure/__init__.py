"""Real programs that measure a machine: primitives, by size, on ranks that really talk to each other."""
