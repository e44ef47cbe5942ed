"""libop's own text, interpreted by the shim, against NumPy and SciPy: `python test_libop.py [part of a name]`."""
import sys
import time
import traceback

import numpy as np

import libop_cases
import taffeta_shim

TOLERANCE = {"f2": 2e-3, "f4": 1e-5, "f8": 1e-12}


def difference(a, b, loose):
    """Returns the difference between two results, or None."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape} and {b.dtype}{b.shape}"
    if a.dtype.kind != "f":
        return None if np.array_equal(a, b) else f"{a!r} and {b!r}"
    rtol = loose or TOLERANCE[a.dtype.str[1:]]
    scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
    return None if np.allclose(a, b, rtol, rtol * scale, equal_nan=True) else f"{a!r} and {b!r}"


def main():
    wanted, count, failed, start = sys.argv[1] if len(sys.argv) > 1 else "", 0, [], time.time()
    for name, text, inputs in libop_cases.all_cases():
        if wanted not in name:
            continue
        count += 1
        try:
            ours = taffeta_shim.run(text, "t", inputs, libop="ft")
            numpy = taffeta_shim.run(text, "t", inputs, libop="numpy")
        except Exception:
            failed.append((name, text + traceback.format_exc(limit=-3)))
            continue
        for key in numpy:
            why = difference(ours[key], numpy[key], 1e-2 if "bf16" in text else None)
            if why:
                failed.append((name, f"{text}{key}: {why}"))
    for name, why in failed[:12]:
        print(f"--- {name}\n{why}\n")
    print(f"{count} cases, {len(failed)} failures, {time.time() - start:.1f} s")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
