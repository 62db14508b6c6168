#!/bin/sh
# Plants each patch of this folder into a copy of the core and lets the simulator look for it.
#
#     sim/planted/run.sh [SEEDS] [PATCH…]
#
# Prints a line for each patch: in how many of the seeds (500 where nothing is said) it is
# found, as what, and how small the case gets. Ends with 1 if one is not found or no longer
# applies. The repository itself is not touched.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
seeds=500
case "${1:-}" in
'' | *[!0-9]*) ;;
*) seeds=$1 && shift ;;
esac
[ $# -gt 0 ] || set -- "$here"/*.patch

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

mkdir -p "$work/core" "$work/sim" "$work/runner/src"
cp -R "$root/sim/src" "$root/sim/Cargo.toml" "$work/sim/"
cp "$root/core/Cargo.toml" "$work/core/"
cp "$root/Cargo.lock" "$work/"
[ ! -f "$root/rust-toolchain.toml" ] || cp "$root/rust-toolchain.toml" "$work/"
# The workspace with these three crates only.
awk '/^members = \[/ { print "members = [\"core\", \"sim\", \"runner\"]"; skip = 1 }
     skip { if ($0 ~ /\]/) skip = 0; next }
     { print }' "$root/Cargo.toml" >"$work/Cargo.toml"
cat >"$work/runner/Cargo.toml" <<'TOML'
[package]
name = "runner"
edition = "2024"
[dependencies]
tidegate-sim = { path = "../sim" }
TOML
cat >"$work/runner/src/main.rs" <<'RUST'
use tidegate_sim::{Campaign, Options, Source, shrink};

fn main() {
    let seeds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(500);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let options = Options::default();
    let summary = Campaign { seeds: 0..seeds, threads, options }.run(|_| {});
    let Some(first) = summary.failures.first() else {
        println!("NOT FOUND in {seeds} seeds");
        std::process::exit(1);
    };
    let code = first.violation.code;
    let small = shrink(&Source::Seed(first.seed), None).map_or(0, |case| case.size);
    println!(
        "found in {} of {seeds} seeds, first {} as {code}, shrunk to {small}",
        summary.failed, first.seed
    );
}
RUST

bad=0
for patch in "$@"; do
    name=$(basename "$patch" .patch)
    rm -rf "$work/core/src"
    cp -R "$root/core/src" "$work/core/"
    if ! patch -d "$work" -p1 -s --forward --dry-run <"$patch" >/dev/null 2>&1; then
        printf '%-34s NO LONGER APPLIES\n' "$name"
        bad=1
        continue
    fi
    patch -d "$work" -p1 -s --forward <"$patch"
    if ! (cd "$work" && CARGO_TARGET_DIR="$work/target" RUSTFLAGS="-A warnings" \
        cargo build -q -p runner 2>"$work/errors"); then
        printf '%-34s DOES NOT COMPILE\n' "$name"
        head -20 "$work/errors"
        bad=1
        continue
    fi
    printf '%-34s ' "$name"
    "$work/target/debug/runner" "$seeds" || bad=1
done
exit $bad
