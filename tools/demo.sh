#!/usr/bin/env bash
# SubdivNet's circular difference, from source to result, a step at a time. usage: tools/demo.sh PATH-TO-TAFFETA
set -euo pipefail
cd "$(dirname "$0")/.."
taffeta=$1
program=examples/subdivnet/circular_diff.ft
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '\n\033[1m── %s\033[0m\n' "$*"; }
show() { printf '$ taffeta %s\n' "$*"; "$taffeta" "$@"; }
[ -t 1 ] || step() { printf '\n── %s\n' "$*"; }

step "1. The program: an irregular tensor program, whose indices come from a mesh"
sed -n '/^def circular_diff/,/^$/p' "$program"

bunny=${TAFFETA_DATA:-}/meshes/libigl_bunny.off
if [ -n "${TAFFETA_DATA:-}" ] && [ -f "$bunny" ]; then
  step "2. The mesh: the Stanford bunny ($bunny)"
  adjacency=$bunny:adjacency
else
  step "2. The mesh: a torus, made by a Taffeta program (with TAFFETA_DATA set it would be the Stanford bunny)"
  show run examples/meshes/torus.ft --out-dir "$work/torus"
  adjacency=$work/torus/adjacency.npy
fi

step "3. What the program means: calls inlined, array statements as loops, types written out"
show show "$program" circular_diff --stage elaborated

step "4. The C that runs"
printf '$ taffeta show %s circular_diff --stage c\n' "$program"
"$taffeta" show "$program" circular_diff --stage c | sed -n '/^static TAFFETA_KERNEL/,/^}/p'

step "5. Compiled, loaded and run on the mesh, with 64 random features for each face"
show run "$program" circular_diff --in adj="$adjacency" --in e='rand(seed=1)' --size feats=64 --out y="$work/y.npy" --time
step "6. The result"
show run "$program" circular_diff --in adj="$adjacency" --in e='rand(seed=1)' --size feats=64
