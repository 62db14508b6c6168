#!/usr/bin/env bash
# Installs programs that are not ours and drives them against the built gateway.
# Not part of `make test`: it downloads about 1.5 GB through npm and pip, once.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: tests/peers/run.sh [--fresh] openclaw | litellm | all

  openclaw   the CLI of the source project in front of our gateway (npm)
  litellm    a model server that is not ours behind our gateway, streamed (pip, in a venv)
  all        both
  --fresh    install anew

Everything is kept in target/peers (or $CARGO_TARGET_DIR/peers); a second run installs nothing.
The peers run without a network where Linux allows it; the first line says so.

Needs: the release program (make build, or TIDEGATE_BIN), npm, python3 with venv, curl, timeout.
PEERS_PYTHON names another Python.

Exit codes:
  0  every check passed
  1  a check failed, or a peer could not be installed
  2  the command line is wrong, or something that must be there is missing
TEXT
}

peers=() fresh=
for word in "$@"; do
    case $word in
        openclaw | litellm) peers+=("$word") ;;
        all) peers+=(openclaw litellm) ;;
        --fresh) fresh=yes ;;
        -h | --help) usage; exit 0 ;;
        *) echo "run.sh: unknown word '$word'" >&2; usage >&2; exit 2 ;;
    esac
done
if [ ${#peers[@]} -eq 0 ]; then usage >&2; exit 2; fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
TIDEGATE=${TIDEGATE_BIN:-$target/release/tidegate}
if [ ! -x "$TIDEGATE" ]; then
    echo "run.sh: no program at $TIDEGATE; build it with 'make build', or name it in TIDEGATE_BIN" >&2
    exit 2
fi
for tool in curl timeout; do
    command -v "$tool" >/dev/null || { echo "run.sh: '$tool' is not installed; install it" >&2; exit 2; }
done

PEERS_DIR=$(mkdir -p "$target/peers" && cd "$target/peers" && pwd)
TIDEGATE=$(realpath "$TIDEGATE")
# Logs of failed runs are kept for a day.
find "$PEERS_DIR" -maxdepth 1 -name "run.*" -mtime +0 -exec rm -rf {} +
RUN_DIR=$(mktemp -d "$PEERS_DIR/run.XXXXXX")
RESULTS=$RUN_DIR/results.tsv
export TIDEGATE PEERS_DIR RUN_DIR RESULTS
: >"$RESULTS"

# A network namespace of its own with nothing but loopback: what the peers say about telemetry
# and update checks needs no belief then.
fence=()
for how in --net "--user --map-root-user --net"; do
    # shellcheck disable=SC2086
    if unshare $how -- ip link set lo up 2>/dev/null; then
        # shellcheck disable=SC2206 disable=SC2016
        fence=(unshare $how -- bash -c 'ip link set lo up && exec "$@"' fenced)
        break
    fi
done
if [ ${#fence[@]} -gt 0 ]; then
    echo "network: the peers run fenced, with loopback alone"
else
    echo "network: NOT fenced (no right to 'unshare --net' here); the peers are told to stay quiet"
fi

# One child at a time, in a process group of its own: an interrupt ends the whole group, and
# its clean-up is waited for.
child=
interrupted() {
    trap '' INT TERM
    if [ -n "$child" ]; then kill -TERM -- "-$child" 2>/dev/null || true; wait "$child" || true; fi
    echo "interrupted; what was written is in $RUN_DIR" >&2
    exit 130
}
trap interrupted INT TERM
run() {
    set -m
    "$@" &
    child=$!
    set +m
    local code=0
    wait "$child" || code=$?
    child=
    return $code
}

for peer in "${peers[@]}"; do
    if [ -n "$fresh" ]; then rm -rf "${PEERS_DIR:?}/$peer"; fi
    if ! run bash "$here/$peer.sh" install; then
        printf '%s\tinstall\tFAIL\tsee what to do above\n' "$peer" >>"$RESULTS"
        continue
    fi
    if ! run ${fence[@]+"${fence[@]}"} bash "$here/$peer.sh" drive; then
        printf '%s\tdrive\tFAIL\tstopped early, see above\n' "$peer" >>"$RESULTS"
    fi
done

echo
awk -F '\t' '
    BEGIN { printf "%-9s %-44s %-5s %s\n", "peer", "check", "", "detail" }
    { printf "%-9s %-44s %-5s %s\n", $1, $2, $3, $4; if ($3 == "ok") ok++; else bad++ }
    END { printf "\npeers: %d passed, %d failed\n", ok, bad; exit (bad > 0 || ok == 0) }
' "$RESULTS" && code=0 || code=1
if [ $code -eq 0 ]; then rm -rf "$RUN_DIR"; else echo "logs: $RUN_DIR"; fi
exit $code
