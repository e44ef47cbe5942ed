"""PolyBench's kernels as rules schedule them, against its C code by gcc and by clang with Polly, and against Pluto's.

    python3 benches/peers/polybench.py ~/polybench-c-4.2.1             LARGE, on one thread and on two
    python3 benches/peers/polybench.py ~/polybench-c-4.2.1 --only lu --dataset MEDIUM
    python3 benches/peers/polybench.py ~/polybench-c-4.2.1 --pluto ~/pluto-polybench --peers pluto

The suite is compiled with `-O3 -march=native`; Polly tiles (`-polly -polly-vectorizer=stripmine`) and, on more than one
thread, is asked for parallel code. Pluto's output for the kernels (with `--tile --parallel`: `KERNEL.pluto.c` in a
folder) is compiled by gcc like the suite, with OpenMP; a kernel that prints other results than the suite, on all
processors, is reported and left out. Each time is the least of several runs, in turn: a run of the suite is a process
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
    p.add_argument("--pluto", type=pathlib.Path, help="where what Pluto made of the kernels is")
    p.add_argument("--peers", default="gcc,polly,pluto", help="whom to race with, of these")
    args = p.parse_args()
    threads = [int(n) for n in args.threads.split(",")]
    has = {"gcc": lambda: True, "polly": has_polly, "pluto": lambda: args.pluto is not None}
    peers = [peer for peer in args.peers.split(",") if has[peer]()]
    # The code of gcc runs on one thread.
    systems = [(peer, n) for peer in peers for n in ([1] if peer == "gcc" else threads)]
    columns = [f"{name} {n}" for name, n in systems] + [f"ours {n}" for n in threads]
    ratios = [f"{peer}/ours {n}" for peer in peers for n in threads]
    print(f"{'ms':<16}" + "".join(f"{c:>12}" for c in columns) + "".join(f"{r:>14}" for r in ratios))
    found = {}
    with tempfile.TemporaryDirectory() as build:
        for file in sorted((ROOT / "tests/polybench").glob("*.ft")):
            if args.only not in file.stem:
                continue
            kernel = next(args.suite.glob(f"*/**/{file.stem}/{file.stem}.c"))
            wrong = "pluto" in peers and pluto_fault(args, kernel, build)
            if wrong:
                print(f"{file.stem}: Pluto's {wrong}", flush=True)
            made = {s: compiled(args, kernel, *s, build) for s in systems if not (wrong and s[0] == "pluto")}
            times = {}
            for _ in range(args.runs):
                for (name, n), program in made.items():
                    keep(times, f"{name} {n}", suite_run(program, n))
                for n in threads:
                    keep(times, f"ours {n}", our_run(args, file, kernel, n))
            row = {}
            for n in threads:
                for peer in peers:
                    of = f"{peer} {1 if peer == 'gcc' else n}"
                    if of in times:
                        row[f"{peer}/ours {n}"] = times[of] / times[f"ours {n}"]
            found[file.stem] = row
            print(
                f"{file.stem:<16}"
                + "".join(f"{times[c]:>12.3f}" if c in times else f"{'-':>12}" for c in columns)
                + "".join(f"{row[r]:>14.2f}" if r in row else f"{'-':>14}" for r in ratios),
                flush=True,
            )
    means = ""
    for r in ratios:
        logs = [math.log(row[r]) for row in found.values() if r in row]
        means += f"{math.exp(sum(logs) / len(logs)):>14.2f}" if logs else f"{'-':>14}"
    print(f"{'geometric mean':<16}" + " " * 12 * len(columns) + means)


def keep(times, key, ms):
    times[key] = min(ms, times.get(key, math.inf))


@functools.cache
def has_polly():
    """Returns whether there is a clang with Polly in it, as Debian's is."""
    command = ["clang", "-O3", "-mllvm", "-polly", "-x", "c", "-c", "-o", os.devnull, os.devnull]
    return shutil.which("clang") is not None and subprocess.run(command, capture_output=True).returncode == 0


def pluto_fault(args, kernel, build):
    """Returns the fault in Pluto's version of a kernel, which must print the same results as the suite."""
    pluto = args.pluto / f"{kernel.stem}.pluto.c"
    if not pluto.is_file():
        return f"{pluto.name} is not there"
    printed = []
    for source in (kernel, pluto):
        program = f"{build}/{kernel.stem}-prints"
        command = ["gcc", "-O3", "-march=native", "-fopenmp"]
        command += sources(args, kernel, source, args.dataset, "-DPOLYBENCH_DUMP_ARRAYS") + ["-o", program, "-lm"]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode != 0:
            return "is not compiled: " + next((l for l in made.stderr.splitlines() if "error" in l), "gcc says nothing")
        # On as many threads as there are processors.
        ran = subprocess.run([program], capture_output=True, text=True)
        if ran.returncode != 0:
            return f"stops with {ran.returncode}"
        printed.append([float(word) for word in ran.stderr.split() if is_number(word)])
    expected, found = printed
    if len(found) != len(expected):
        return f"prints {len(found)} numbers, and the suite {len(expected)}"
    # Two digits behind the point are printed.
    same = lambda a, b: a == b or abs(a - b) <= 0.011 + 1e-6 * abs(b) or (math.isnan(a) and math.isnan(b))
    far = sum(not same(a, b) for a, b in zip(found, expected))
    return f"has other results: {far} of {len(expected)} numbers" if far else None


def is_number(word):
    try:
        float(word)
        return True
    except ValueError:
        return False


def sources(args, kernel, source, size, *defined):
    """Returns flags and files of a program of the suite."""
    flags = [f"-I{args.suite / 'utilities'}", f"-I{kernel.parent}", f"-D{size}_DATASET", *defined]
    flags += ["-DDATA_TYPE_IS_DOUBLE"] if is_double(kernel) else []
    return flags + [str(args.suite / "utilities/polybench.c"), str(source)]


def compiled(args, kernel, name, threads, build):
    program = f"{build}/{kernel.stem}-{name}-{threads}"
    compiler = ["gcc", "-O3"] + (["-fopenmp"] if name == "pluto" else [])
    source = args.pluto / f"{kernel.stem}.pluto.c" if name == "pluto" else kernel
    if name == "polly":
        compiler = ["clang", "-O3"]
        options = ["-polly", "-polly-vectorizer=stripmine"]
        if threads > 1:
            options += ["-polly-parallel", f"-polly-num-threads={threads}"]
        compiler += [word for o in options for word in ("-mllvm", o)] + (["-lgomp"] if threads > 1 else [])
    command = compiler + ["-march=native"] + sources(args, kernel, source, args.dataset, "-DPOLYBENCH_TIME")
    subprocess.run(command + ["-o", program, "-lm"], check=True, capture_output=True)
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
