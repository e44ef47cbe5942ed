"""Comparison of Taffeta's results, saved as files, with those of NumPy: `python run_cases.py cases.json`.

Prints a line for each difference and nothing else.
"""
import ast
import glob
import json
import os
import sys

import numpy as np

import taffeta_shim

# Tolerance by bytes of a float, relative to the largest element: sums are added up in another order here.
TOLERANCE = {2: 5e-3, 4: 1e-5, 8: 1e-9}


def static(text):
    """Parses the value after `--set name=`: a literal of Python, else a string."""
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError):
        return text


def arrays(folder):
    return {os.path.basename(f)[:-len(".npy")]: np.load(f) for f in glob.glob(os.path.join(folder, "*.npy"))}


def difference(ours, numpy, loose):
    if ours.shape != numpy.shape or ours.dtype.kind != numpy.dtype.kind:
        return f"{ours.dtype}{list(ours.shape)} and {numpy.dtype}{list(numpy.shape)}"
    if ours.dtype.kind != "f":
        return None if np.array_equal(ours, numpy) else f"{ours.tolist()} and {numpy.tolist()}"
    tolerance = 2e-2 if loose else TOLERANCE[min(ours.dtype.itemsize, numpy.dtype.itemsize)]
    scale = np.max(np.abs(numpy[np.isfinite(numpy)]), initial=0.0)
    if np.allclose(ours, numpy, 0.0, tolerance * scale, equal_nan=True):
        return None
    return f"{ours.tolist()} and {numpy.tolist()}"


def check(case):
    with open(case["file"], encoding="utf-8") as f:
        text = f.read()
    statics = {name: static(value) for name, value in case["statics"].items()}
    folder = os.path.dirname(case["file"])
    try:
        results = taffeta_shim.run(text, case["entry"], arrays(case["inputs"]), case["sizes"], statics, folder,
                                os.path.basename(case["file"]))
    except taffeta_shim.NoGradients:
        return []
    except Exception as e:  # any failure is a difference
        return [f"NumPy: {type(e).__name__}: {e}"]
    ours = arrays(case["results"])
    if set(ours) != set(results):
        return [f"results {sorted(ours)}, and with NumPy {sorted(results)}"]
    found = ((name, difference(ours[name], np.asarray(results[name]), "bf16" in text)) for name in sorted(ours))
    return [f"`{name}`: Taffeta and NumPy: {why}"[:600] for name, why in found if why]


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        cases = json.load(f)
    for case in cases:
        for fault in check(case):
            print(f"{case['name']}: {fault}")


if __name__ == "__main__":
    main()
