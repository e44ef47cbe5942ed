"""PolyBench's kernels by what rules choose, against its C code by gcc and by clang with Polly.

    python3 benches/peers/polybench.py ~/polybench-c-4.2.1             LARGE, on one thread and on two
    python3 benches/peers/polybench.py ~/polybench-c-4.2.1 --only lu --dataset MEDIUM

The suite is compiled with `-O3 -march=native`; Polly tiles (`-polly -polly-vectorizer=stripmine`) and, on more than one
thread, is asked for parallel code. Each time is the least of so many runs, in turn: a run of the suite is a process
that sets up its data, a run of ours the entry on random data, with sizes compiled in. Kernels of floats are compiled
for doubles. Ratios above 1 are in our favour.
"""

import argparse
import functools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TAFFETA = os.environ.get("TAFFETA", str(ROOT / "target/release/taffeta"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("suite", type=pathlib.Path, help="where PolyBench/C 4.2.1 is")
    p.add_argument("--only", default="", help="kernels whose name has it in it")
    p.add_argument("--dataset", default="LARGE")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--runs", type=int, default=2)
    p.add_argument("--schedule", default="auto")
    args = p.parse_args()
    threads = [int(n) for n in args.threads.split(",")]
    systems = [("gcc", 1)] + [("polly", n) for n in threads if has_polly()]
    columns = [f"{name} {n}" for name, n in systems] + [f"ours {n}" for n in threads]
    ratios = [f"gcc/ours {n}" for n in threads] + [f"polly/ours {n}" for n in threads if has_polly()]
    print(f"{'ms':<16}" + "".join(f"{c:>12}" for c in columns) + "".join(f"{r:>14}" for r in ratios))
    found = {}
    with tempfile.TemporaryDirectory() as build:
        for file in sorted((ROOT / "tests/polybench").glob("*.ft")):
            if args.only not in file.stem:
                continue
            kernel = next(args.suite.glob(f"*/**/{file.stem}/{file.stem}.c"))
            made = {s: compiled(args, kernel, *s, build) for s in systems}
            times = {}
            for _ in range(args.runs):
                for (name, n), program in made.items():
                    keep(times, f"{name} {n}", suite_run(program, n))
                for n in threads:
                    keep(times, f"ours {n}", our_run(args, file, kernel, n))
            row = {}
            for n in threads:
                for peer, of in (("gcc", 1), ("polly", n)):
                    if f"{peer} {of}" in times:
                        row[f"{peer}/ours {n}"] = times[f"{peer} {of}"] / times[f"ours {n}"]
            found[file.stem] = row
            print(
                f"{file.stem:<16}"
                + "".join(f"{times[c]:>12.3f}" for c in columns)
                + "".join(f"{row[r]:>14.2f}" for r in ratios),
                flush=True,
            )
    means = {r: math.exp(sum(math.log(row[r]) for row in found.values()) / len(found)) for r in ratios if found}
    print(f"{'geometric mean':<16}" + " " * 12 * len(columns) + "".join(f"{means[r]:>14.2f}" for r in ratios))


def keep(times, key, ms):
    times[key] = min(ms, times.get(key, math.inf))


@functools.cache
def has_polly():
    """Whether there is a clang with Polly in it, as Debian's is."""
    command = ["clang", "-O3", "-mllvm", "-polly", "-x", "c", "-c", "-o", os.devnull, os.devnull]
    return shutil.which("clang") is not None and subprocess.run(command, capture_output=True).returncode == 0


def compiled(args, kernel, name, threads, build):
    program = f"{build}/{kernel.stem}-{name}-{threads}"
    compiler = ["gcc", "-O3"]
    if name == "polly":
        compiler = ["clang", "-O3"]
        options = ["-polly", "-polly-vectorizer=stripmine"]
        if threads > 1:
            options += ["-polly-parallel", f"-polly-num-threads={threads}"]
        compiler += [word for o in options for word in ("-mllvm", o)] + (["-lgomp"] if threads > 1 else [])
    utilities = args.suite / "utilities"
    command = compiler + ["-march=native", f"-I{utilities}", f"-I{kernel.parent}", "-DPOLYBENCH_TIME"]
    command += [f"-D{args.dataset}_DATASET"] + (["-DDATA_TYPE_IS_DOUBLE"] if is_double(kernel) else [])
    command += [str(utilities / "polybench.c"), str(kernel), "-o", program, "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    return program


def is_double(kernel):
    return "DATA_TYPE_IS_DOUBLE" in kernel.with_suffix(".h").read_text()


def suite_run(program, threads):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    return float(subprocess.run([program], check=True, capture_output=True, text=True, env=env).stdout) * 1e3


def our_run(args, file, kernel, threads):
    text = file.read_text()
    entry = [e for e in re.findall(r"^def (\w+)\(", text, re.M) if e not in ("init", "main")][-1]
    params = re.search(rf"^def {entry}\((.*?)\):$", text, re.M | re.S).group(1)
    of = dict(re.findall(r"(\w+): ((?:inout\[)?\w+(?:\[[^\]]*\])?)", params))
    sizes = {k.lower(): v for k, v in dataset(kernel, args.dataset).items()}
    given = []
    for name, kind in of.items():
        if name in sizes:
            given += ["--in", f"{name}={sizes[name]}"]
        elif "[" not in kind:
            given += ["--in", f"{name}=1.5"]
        elif "i8[" in kind:
            given += ["--in", f"{name}=randint(0,4)"]
        elif "i32[" in kind:
            given += ["--in", f"{name}=randint(0,1000)"]
        else:
            given += ["--in", f"{name}=rand"]
    mentioned = set(re.findall(r"\w+", params))
    for name, value in sizes.items():
        if name in mentioned and name not in of:
            given += ["--size", f"{name}={value}"]
    command = [TAFFETA, "bench", str(file), entry, "--json", "--schedule", args.schedule, "--threads", str(threads)]
    command += ["--warmup", "1", "--repeat", "5", "--seconds", "3"] + given
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{file.stem}: {ran.stdout}{ran.stderr}")
    return json.loads(ran.stdout)["min_ms"]


def dataset(kernel, name):
    text = kernel.with_suffix(".h").read_text()
    block = re.search(rf"ifdef {name}_DATASET(.*?)endif", text, re.S).group(1)
    return dict(re.findall(r"define (\w+) (\d+)", block))


if __name__ == "__main__":
    main()
