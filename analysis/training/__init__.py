"""Published training steps: read, rebuilt as scenarios, predicted, and compared with what was measured."""
