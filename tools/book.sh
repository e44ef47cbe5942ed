#!/usr/bin/env bash
# Builds the manual as a book into target/book, by mdbook, which is installed by cargo where it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin"
if ! command -v mdbook >/dev/null 2>&1; then
  echo "book: installing mdbook by cargo (some minutes, once)" >&2
  cargo install --quiet --locked mdbook || { echo "book: type: cargo install --locked mdbook" >&2; exit 1; }
fi
# A relative path would be below the book for some versions of mdbook, and below this folder for others.
mdbook build docs --dest-dir "$PWD/target/book"
echo "book: target/book/index.html"
