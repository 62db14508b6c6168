# What both peers need: progress lines, results, gateways, and the end of every process.
# Sourced by openclaw.sh and litellm.sh, which set PEER first; run.sh sets the folders.
# shellcheck shell=bash

say() { printf '[%s] %s\n' "$PEER" "$*"; }

# What can't go on: says what happened and what to do about it.
die() {
    local advice
    printf '[%s] FAILED: %s\n' "$PEER" "$1" >&2
    shift
    for advice in "$@"; do printf '[%s]   %s\n' "$PEER" "$advice" >&2; done
    exit 1
}

# verdict CHECK ok|FAIL DETAIL: one row of the summary.
verdict() {
    printf '[%s] %-5s%s: %s\n' "$PEER" "$2" "$1" "$3"
    printf '%s\t%s\t%s\t%s\n' "$PEER" "$1" "$2" "$3" >>"$RESULTS"
}

# installed WHAT: whether exactly that was installed before.
installed() { [ "$(cat "$HOME_DIR/installed" 2>/dev/null)" = "$1" ]; }

# mark_installed WHAT SECONDS
mark_installed() {
    printf '%s\n' "$1" >"$HOME_DIR/installed"
    say "installed in $2 s, $(du -sm "$HOME_DIR" | cut -f1) MB"
}

# install_step LOG COMMAND...: quiet unless it fails, then loud.
install_step() {
    local log=$1
    shift
    if "$@" >>"$log" 2>&1; then return 0; fi
    tail -n 15 "$log" >&2
    return 1
}

started=()

# ended PID: asks a process of ours to stop and waits; kills what does not stop in 15 s.
ended() {
    local pid=$1 tries=0
    kill -TERM "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null && [ $tries -lt 150 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}

clean_up() {
    local pid
    for pid in ${started[@]+"${started[@]}"}; do ended "$pid"; done
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# background NAME COMMAND...: starts a process with its output in NAME.out and NAME.err, and
# puts its id into PID. It ends with this script, whatever happens.
background() {
    local name=$1
    shift
    "$@" >"$RUN/$name.out" 2>"$RUN/$name.err" &
    PID=$!
    started+=("$PID")
}

# until_true SECONDS COMMAND...: asks again until it is true; false if PID ends or time is up.
until_true() {
    local left=$(($1 * 5))
    shift
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        if [ $left -le 0 ] || ! kill -0 "$PID" 2>/dev/null; then return 1; fi
        sleep 0.2
    done
}

# gateway NAME FLAG...: starts a gateway of its own on a free port; sets PORT and PID.
gateway() {
    local name=$1
    shift
    background "$name" env TIDEGATE_GATEWAY_TOKEN="$TOKEN" \
        "$TIDEGATE" gateway run --port 0 --state-dir "$RUN/$name.state" "$@"
    until_true 20 grep -q '^ *address ' "$RUN/$name.out" || die "our gateway did not start" \
        "it said: $(cat "$RUN/$name.err")"
    PORT=$(sed -n 's/^ *address *ws:\/\/127\.0\.0\.1:\([0-9]*\).*/\1/p' "$RUN/$name.out")
}

# tidegate COMMAND...: our own client, at the gateway on PORT.
tidegate() { TIDEGATE_GATEWAY_TOKEN=$TOKEN timeout 120 "$TIDEGATE" "$@" --port "$PORT"; }

# secret: a token that nobody guesses, made for this run.
secret() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

RUN=$RUN_DIR/$PEER
HOME_DIR=$PEERS_DIR/$PEER
mkdir -p "$RUN" "$HOME_DIR"
