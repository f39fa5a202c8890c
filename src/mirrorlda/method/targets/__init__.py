"""What the targets of a fit are: numbers, levels, classes or labels, as values."""
