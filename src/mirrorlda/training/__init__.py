"""Stochastic mirror descent over the documents of a source: order, steps, checkpoints, progress."""
