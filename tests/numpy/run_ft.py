"""Runs an entry of a `.ft` file under the NumPy shim.

    python run_ft.py FILE [ENTRY] [--in NAME=VALUE]… [--size NAME=N]… [--set NAME=LITERAL]… [--out NAME=FILE]… [--out-dir DIR]
                     [--libop numpy|ft]

VALUE is a `.npy` file or a literal (`3`, `[[1, 2], [3, 4]]`, `inf`). ENTRY may be left out if the file has one. Each
result is written as `.npy` to its `--out`, or to DIR/NAME.npy; without either, it is printed.
"""
import argparse
import ast
import math
import os
import sys

import numpy as np

from taffeta_shim import Function, Module, TaffetaError, run


def pairs(items):
    return dict(item.split("=", 1) for item in items)


def value(text):
    if text.endswith(".npy"):
        return np.load(text)
    tree = ast.parse(text, mode="eval").body
    return np.array(eval(compile(ast.Expression(tree), text, "eval"), {"__builtins__": {}, "inf": math.inf, "nan": math.nan, "true": True, "false": False}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("entry", nargs="?")
    for option in ("--in", "--size", "--set", "--out"):
        parser.add_argument(option, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out-dir")
    parser.add_argument("--libop", choices=["numpy", "ft"], default="numpy")
    args = parser.parse_args()

    with open(args.file, encoding="utf-8") as f:
        text = f.read()
    folder = os.path.dirname(os.path.abspath(args.file))
    entry = args.entry
    if entry is None:
        functions = [f for f in Module(text, folder, args.file).names.values() if isinstance(f, Function) and f.is_entry]
        if len(functions) != 1:
            sys.exit("say which entry: " + " ".join(f.name for f in functions))
        entry = functions[0].name
    inputs = {k: value(v) for k, v in pairs(vars(args)["in"]).items()}
    sizes = {k: int(v) for k, v in pairs(args.size).items()}
    statics = {k: ast.literal_eval(v) for k, v in pairs(args.set).items()}
    try:
        results = run(text, entry, inputs, sizes, statics, folder, args.file, args.libop)
    except TaffetaError as e:
        sys.exit(f"error: {e}")
    files = pairs(args.out)
    for name, a in results.items():
        if args.out_dir:
            os.makedirs(args.out_dir, exist_ok=True)
            files.setdefault(name, os.path.join(args.out_dir, name + ".npy"))
        if name in files:
            np.save(files[name], a)
        elif not files:
            print(f"{name}: {a.dtype}{list(a.shape)}\n{a}")


if __name__ == "__main__":
    main()
