"""Formats: each file reads the rows of one, but for `triples`, which reads the two that are alike."""
