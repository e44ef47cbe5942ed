"""The workloads of `sparse.py`, a subject in each module."""
