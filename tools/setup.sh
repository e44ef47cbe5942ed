#!/usr/bin/env bash
# Checks for what building and testing Taffeta needs, installs what is missing where it may, and otherwise says what to
# type.
#
#   tools/setup.sh            what `make demo` needs: Rust, a C compiler with OpenMP, autotools (isl), z3
#   tools/setup.sh test       and what `make test` needs besides: Python 3 with NumPy and SciPy in .venv/, OpenBLAS if it can be had
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

command -v cargo >/dev/null 2>&1 || { [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"; }
have cargo || fail "no Rust toolchain (cargo). Install Rust 1.95 or newer: https://rustup.rs"

# What is missing, as Debian calls it.
missing=()
need() { missing+=("$1"); }
have make || need make
have cc || have gcc || have clang || need gcc
have autoconf || need autoconf
have automake || need automake
have libtoolize || need libtool
have pkg-config || need pkg-config
{ have pkg-config && pkg-config --exists z3; } || [ -f /usr/include/z3.h ] || need libz3-dev
if [ "${1:-}" = test ]; then
  have python3 || need python3
  # Debian keeps the venv module's ensurepip in a package of its own.
  { have python3 && python3 -c 'import venv, ensurepip' 2>/dev/null; } || need python3-venv
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  if have sudo && sudo -n true 2>/dev/null; then as_root=(sudo -n); else as_root=(no); fi
fi
if [ ${#missing[@]} -gt 0 ]; then
  say "missing: ${missing[*]}"
  if ! have apt-get || [ "${as_root[0]:-}" = no ]; then
    say "cannot install them here. On Debian or Ubuntu, type:"
    fail "    sudo apt-get update && sudo apt-get install -y ${missing[*]}"
  fi
  say "installing them with apt-get"
  "${as_root[@]}" apt-get update -qq >&2 || say "apt-get update failed; trying with the lists that are here"
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 \
    || fail "apt-get could not install: ${missing[*]}"
fi

# OpenMP is part of gcc; clang has it in a package of its own.
compiler=${CC:-cc}
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
printf '#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n' > "$probe/omp.c"
"$compiler" -fopenmp "$probe/omp.c" -o "$probe/omp" 2>"$probe/log" \
  || fail "the C compiler '$compiler' cannot build OpenMP programs ($(head -n 1 "$probe/log")). Install gcc (with clang: libomp-dev)"

if [ "${1:-}" = test ] && ! .venv/bin/python -c 'import numpy, scipy' 2>/dev/null; then
  say "making .venv with NumPy and SciPy, which the differential tests compare with"
  rm -rf .venv
  python3 -m venv .venv
  if ! .venv/bin/pip install --quiet --disable-pip-version-check 'numpy>=2' scipy >&2; then
    say "pip could not install NumPy and SciPy: the comparisons with NumPy will say that they were skipped"
  fi
fi

# Products by a library (`as_lib`) are tested with one where it can be had. Programs never need it.
if [ "${1:-}" = test ] && have apt-get && [ "${as_root[0]:-}" != no ] && ! /sbin/ldconfig -p 2>/dev/null | grep -q 'libopenblas\.so\.0'; then
  say "installing OpenBLAS, which as_lib is tested with"
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends libopenblas0-pthread >&2 \
    || { "${as_root[@]}" apt-get update -qq >&2 \
         && DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends libopenblas0-pthread >&2; } \
    || say "apt-get could not install it: only our own kernel is tested"
fi
