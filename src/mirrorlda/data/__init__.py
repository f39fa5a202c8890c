"""From files to documents: readers of every format, text to words, corpora on disk, and how bytes reach a disk."""
