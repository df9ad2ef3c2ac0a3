"""Admission control for Python web sites, people first, and the polite client that belongs to it."""
