#!/usr/bin/env bash
# Draws the pictures of docs/src/gallery.md by the commands that stand there. usage: tools/gallery.sh TAFFETA [DIR]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
taffeta=$(realpath "$1")
to=$(realpath -m "${2:-$root/docs/src/gallery}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$root/examples" examples
sed -n '/^```text$/,/^```$/p' "$root/docs/src/gallery.md" | grep '^taffeta ' | while read -r _ arguments; do
  # The words of these commands need no quotes.
  # shellcheck disable=SC2086
  "$taffeta" $arguments > /dev/null < /dev/null
done
mkdir -p "$to"
for picture in $(grep -o 'gallery/[a-z]*\.png' "$root/docs/src/gallery.md" | sort -u); do
  cp "$(basename "$picture")" "$to/"
done
