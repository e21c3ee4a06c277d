"""How much there is to do: tables and their keys, the dense model, the input pipeline."""
