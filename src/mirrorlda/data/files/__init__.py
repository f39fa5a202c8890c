"""Bytes on a disk or behind a URL: files that are there in full or not at all, arrays, JSON, tables."""
