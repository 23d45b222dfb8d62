#!/bin/sh
# Prints the licences of all crates that are linked into the program: names first, then each text once.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
crates=$(mktemp)
texts=$(mktemp -d)
trap 'rm -rf "$crates" "$texts"' EXIT

# No crate is ours that has no place in a registry.
"$cargo" tree --locked --offline --package millrace --edges normal --prefix none --no-dedupe --format '{p}|{l}' |
    grep -v '(/' | sed 's/ (proc-macro)//' | sort -u >"$crates"
echo "The program millrace contains these crates:"
echo
echo "The standard library of Rust: MIT OR Apache-2.0"
sed 's/^\(.*\) v\([^|]*\)|\(.*\)/\1 \2: \3/' "$crates"

sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
while IFS='|' read -r crate _; do
    folder=${crate% v*}-${crate##* v}
    for file in "$sources"/*/"$folder"/[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* "$sources"/*/"$folder"/COPYING* "$sources"/*/"$folder"/NOTICE*; do
        [ -f "$file" ] || continue
        sum=$(md5sum <"$file" | cut -d' ' -f1)
        [ -e "$texts/$sum" ] || cp "$file" "$texts/$sum"
        echo "$folder (${file##*/})" >>"$texts/$sum.names"
    done
done <"$crates"
for names in "$texts"/*.names; do
    printf '\n%s\n\n' ------------------------------------------------------------------------
    cat "$names"
    echo
    cat "${names%.names}"
done
