"""Structured records of a run: JSON files, dumps, tables."""
