"""Statistics of pairs of times."""

import statistics


def interval(values):
    """Returns the median, and its 95 % interval by order statistics."""
    v, n = sorted(values), len(values)
    term, total, outside = 0.5**n, 0.0, 0
    for k in range(n // 2):
        total += term
        if total > 0.025:
            break
        outside = k + 1
        term *= (n - k) / (k + 1)
    return statistics.median(v), [v[outside], v[n - 1 - outside]]
