"""Workloads of `sparse.py`, a subject in each module."""
