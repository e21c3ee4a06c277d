"""What other programs measured, read without trusting it: collectives, profiler and execution traces, wiring.

Every reader takes a path, works in bounded memory, and raises InputError, in one line with the file, for
what is empty, cut short, binary or of another kind.
"""
