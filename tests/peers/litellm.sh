#!/usr/bin/env bash
# A model server that is not ours behind our gateway. Called by run.sh: install, then drive.
set -euo pipefail
PEER=litellm
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# One exact release: a server that sees prompts is not taken on trust at whatever is newest.
SPEC='litellm[proxy]==1.108.7'
VENV=$HOME_DIR/venv

install() {
    if installed "$SPEC" && [ -x "$VENV/bin/litellm" ]; then
        say "$SPEC is installed"
        return
    fi
    local python=${PEERS_PYTHON:-python3} from=$SECONDS
    command -v "$python" >/dev/null || die "there is no $python" \
        "install Python 3.10 or newer with its venv module, or name one in PEERS_PYTHON"
    rm -rf "$HOME_DIR"
    mkdir -p "$HOME_DIR"
    say "installing $SPEC with $("$python" --version 2>&1)"
    install_step "$RUN/venv.log" "$python" -m venv "$VENV" ||
        die "$python can't make a virtual environment (log: $RUN/venv.log)" \
            "install its venv module, or name another Python in PEERS_PYTHON"
    install_step "$RUN/pip.log" "$VENV/bin/pip" install --disable-pip-version-check \
        --no-cache-dir --no-input "$SPEC" ||
        die "pip could not install $SPEC (log: $RUN/pip.log)" \
            "see whether pip reaches its index: pip index versions litellm" \
            "another Python may fit: PEERS_PYTHON=python3.12 tests/peers/run.sh litellm" \
            "to run the other peer alone: tests/peers/run.sh openclaw"
    mark_installed "$SPEC" $((SECONDS - from))
}

# free_port: one that nobody listens on now.
free_port() {
    "$VENV/bin/python" -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

alive() { curl -fsS --max-time 2 "http://127.0.0.1:$SERVER_PORT/health/liveliness"; }

server() {
    local port
    port=$(free_port)
    SERVER_PORT=$port
    KEY=sk-$(secret)
    mkdir -p "$RUN/home"
    sed "s|@REPLY@|$REPLY|" "$here/litellm.yaml" >"$RUN/litellm.yaml"
    background server env -i PATH="$VENV/bin:/usr/bin:/bin" HOME="$RUN/home" LANG=C.UTF-8 \
        LITELLM_MASTER_KEY="$KEY" LITELLM_LOCAL_MODEL_COST_MAP=True \
        "$VENV/bin/litellm" --config "$RUN/litellm.yaml" --host 127.0.0.1 --port "$port"
    SERVER=$PID
    until_true 120 alive || die "LiteLLM did not start" "see $RUN/server.err"
}

# provider NAME KEY MODEL: a gateway of ours in front of the server.
provider() {
    TIDEGATE_PROVIDER_KEY=$2 gateway "$1" --model "$3" \
        --provider-url "http://127.0.0.1:$SERVER_PORT/v1"
}

# A reply longer than one piece and one pace of ours, in which every part is known.
reply() { seq -f 'Piece %.0f of 400.' -s ' ' 400; }

# The answer comes whole, to the sender and in more than one event to a watcher.
streamed() {
    background watch env TIDEGATE_GATEWAY_TOKEN="$TOKEN" \
        "$VENV/bin/python" "$here/watch.py" "$PORT" agent:main:streamed
    local watch=$PID code=0
    until_true 20 grep -q '^ready' "$RUN/watch.out" || die "the watcher did not connect" \
        "see $RUN/watch.err"
    tidegate agent -m 'stream, please' --session-key agent:main:streamed \
        >"$RUN/streamed.out" 2>"$RUN/streamed.err" || code=$?
    if [ $code -eq 0 ] && [ "$(cat "$RUN/streamed.out")" = "$REPLY" ]; then
        verdict agent ok "exit 0, all ${#REPLY} bytes of the reply"
    else
        verdict agent FAIL "exit $code; see $RUN/streamed.out and $RUN/streamed.err"
    fi
    code=0
    wait "$watch" || code=$?
    local events joined
    events=$(sed -n 's/^events //p' "$RUN/watch.out")
    joined=$(sed -n 's/^joined //p' "$RUN/watch.out")
    if [ $code -eq 0 ] && [ "${events:-0}" -ge 2 ] && [ "$joined" = "$REPLY" ]; then
        verdict streamed-in-more-than-one-event ok "$events events, joined they are the reply"
    else
        verdict streamed-in-more-than-one-event FAIL \
            "${events:-no} events, expected 2 or more that join to the reply; see $RUN/watch.out"
    fi
}

# refused NAME WORDS...: a run that must fail, with all of these words in what is said.
refused() {
    local name=$1 code=0 missing='' word
    shift
    tidegate agent -m hi >"$RUN/$name.said" 2>&1 || code=$?
    for word in "$@"; do
        grep -qF "$word" "$RUN/$name.said" || missing="$missing '$word'"
    done
    if [ $code -eq 1 ] && [ -z "$missing" ]; then
        verdict "$name" ok "exit 1, $(tail -n 1 "$RUN/$name.said" | cut -c 1-140)"
    else
        verdict "$name" FAIL "exit $code, expected 1; not said:${missing:- nothing}; see $RUN/$name.said"
    fi
}

drive() {
    TOKEN=$(secret)
    REPLY=$(reply)
    say "starting LiteLLM"
    server
    provider good "$KEY" peer-mock
    local good=$PORT
    say "LiteLLM on port $SERVER_PORT behind $("$TIDEGATE" --version) on port $PORT"
    streamed

    local code=0
    tidegate agent -m again --json >"$RUN/json.out" 2>"$RUN/json.err" || code=$?
    if [ $code -eq 0 ] && grep -q '"status": *"ok"' "$RUN/json.out"; then
        verdict agent-json ok "exit 0, status ok"
    else
        verdict agent-json FAIL "exit $code; see $RUN/json.out"
    fi

    # What this server says of a bad key is its own (400, since it keeps no keys here).
    provider bad-model "$KEY" no-such-model
    refused unknown-model 'HTTP 400' 'Invalid model name'
    local wrong
    wrong=sk-$(secret)
    provider bad-key "$wrong" peer-mock
    refused wrong-key 'HTTP 400' 'No connected db'
    if grep -rqF -e "$wrong" -e "$KEY" "$RUN"/*.said "$RUN"/good.* "$RUN"/bad-*; then
        verdict no-key-in-what-we-wrote FAIL "a key stands in a file under $RUN"
    else
        verdict no-key-in-what-we-wrote ok "neither key in outputs, logs or state"
    fi

    ended "$SERVER"
    PORT=$good
    refused server-gone "can't be reached"
}

"$1"
