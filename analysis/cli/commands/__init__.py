"""The commands: each takes its options, asks the packages below, and shows the answer."""
