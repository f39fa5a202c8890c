"""Corpora on disk: made from files, written, opened, and read a part at a time."""
