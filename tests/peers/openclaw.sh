#!/usr/bin/env bash
# The CLI of the source project in front of our gateway. Called by run.sh: install, then drive.
set -euo pipefail
PEER=openclaw
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

NODE_SPEC=node@26
CLI_SPEC=openclaw@2026.9.6
NODE_BIN=$HOME_DIR/node/node_modules/.bin
CLI=$HOME_DIR/cli/node_modules/openclaw/openclaw.mjs

# npm_install FOLDER FLAG SPEC
npm_install() {
    mkdir -p "$HOME_DIR/$1"
    echo '{"private": true}' >"$HOME_DIR/$1/package.json"
    install_step "$RUN/npm.log" env npm_config_cache="$HOME_DIR/cache" PATH="$NODE_BIN:$PATH" \
        npm install --prefix "$HOME_DIR/$1" --no-audit --no-fund --no-update-notifier \
        --loglevel=error "$2" "$3" ||
        die "npm could not install $3 (log: $RUN/npm.log)" \
            "see whether npm reaches its registry: npm ping; npm view $3 version" \
            "it needs 1 GB of disk under $HOME_DIR" \
            "to run the other peer alone: tests/peers/run.sh litellm"
}

install() {
    if installed "$NODE_SPEC $CLI_SPEC" && [ -x "$NODE_BIN/node" ] && [ -f "$CLI" ]; then
        say "$CLI_SPEC and $NODE_SPEC are installed"
        return
    fi
    command -v npm >/dev/null || die "npm is not installed" "install Node.js with npm, any version"
    local from=$SECONDS
    rm -rf "$HOME_DIR"
    # The package `node` has no program in it: its install script asks npm for the one that
    # fits the machine. The CLI needs no install script, so none of its 330 packages runs one.
    say "installing $NODE_SPEC"
    npm_install node --ignore-scripts=false "$NODE_SPEC"
    [ -x "$NODE_BIN/node" ] || die "the package $NODE_SPEC brought no program" \
        "see whether npm runs install scripts: npm config get ignore-scripts"
    say "installing $CLI_SPEC"
    npm_install cli --ignore-scripts "$CLI_SPEC"
    rm -rf "$HOME_DIR/cache"
    mark_installed "$NODE_SPEC $CLI_SPEC" $((SECONDS - from))
}

# The CLI with a home and an environment of its own, at the gateway on PORT.
CLIENT=(env -i PATH="$NODE_BIN:/usr/bin:/bin" HOME="$RUN/home" TMPDIR="$RUN/tmp" NO_COLOR=1
    OPENCLAW_STATE_DIR="$RUN/home/state" OPENCLAW_CONFIG_PATH="$RUN/home/openclaw.json"
    "$NODE_BIN/node" "$CLI")

# openclaw WORD...
openclaw() { timeout --kill-after=5 90 "${CLIENT[@]}" "$@"; }

# configure TOKEN: points the CLI at the gateway on PORT.
configure() {
    mkdir -p "$RUN/home/state" "$RUN/tmp"
    sed -e "s|@PORT@|$PORT|; s|@TOKEN@|$1|; s|@HOME@|$RUN/home|" \
        "$(dirname "${BASH_SOURCE[0]}")/openclaw.json5" >"$RUN/home/openclaw.json"
}

# holds FILE EXPRESSION: whether it is true of the JSON in FILE, called `it`.
holds() {
    "$NODE_BIN/node" -e '
        const it = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
        process.exit(new Function("it", "return " + process.argv[2])(it) ? 0 : 1);
    ' "$1" "$2" 2>/dev/null
}

# tried NAME EXIT EXPRESSION WORD...: runs `openclaw WORD...`; passes if it exits with EXIT and
# the expression holds for its JSON. The output is in NAME.out.
tried() {
    local name=$1 exit=$2 expression=$3 code=0 from=$SECONDS
    shift 3
    openclaw "$@" >"$RUN/$name.out" 2>"$RUN/$name.err" || code=$?
    if [ $code -ne "$exit" ]; then
        verdict "$name" FAIL "exit $code, expected $exit; $(tail -n 3 "$RUN/$name.err" | tr '\n\t' '  ')"
    elif ! holds "$RUN/$name.out" "$expression"; then
        verdict "$name" FAIL "exit $code, but not so: $expression; see $RUN/$name.out"
    else
        verdict "$name" ok "exit $code in $((SECONDS - from)) s"
    fi
}

# The three commands that everything else builds on, and what they leave behind.
first_light() {
    tried agent 0 'it.status === "ok" && it.summary === "completed" && it.runId &&
        it.result.payloads[0].text.startsWith("[demo model]")' \
        agent --message hi --session-key agent:main:peer --json
    local run_id
    run_id=$(sed -n 's/.*"runId": "\([^"]*\)".*/\1/p' "$RUN/agent.out" | head -n 1)

    local code=0
    openclaw gateway health >"$RUN/gateway-health.out" 2>&1 || code=$?
    if [ $code -eq 0 ] && grep -q '^OK ' "$RUN/gateway-health.out"; then
        verdict gateway-health ok "exit 0, $(grep '^OK ' "$RUN/gateway-health.out")"
    else
        verdict gateway-health FAIL "exit $code; $(tail -n 3 "$RUN/gateway-health.out" | tr '\n\t' '  ')"
    fi

    tried gateway-call-health 0 'it.ok === true && it.defaultAgentId === "main"' \
        gateway call health --json
    tried gateway-call-sessions.list 0 "it.count === 1 && it.sessions[0].key === 'agent:main:peer' &&
        it.sessions[0].status === 'done' && it.sessions[0].lastRunId === '$run_id'" \
        gateway call sessions.list --json
}

# What an operator types besides.
around() {
    tried health 0 'it.ok === true' health --json
    tried status 0 'it.gateway.reachable === true && it.agents.totalSessions === 1 &&
        it.agents.agents[0].lastUpdatedAt > 0' status --json
    tried gateway-status 0 'it.rpc.ok === true && it.gateway.version' gateway status --json
    tried unknown-method 1 'it.error.code === "INVALID_REQUEST" &&
        it.error.message === "unknown method: no.such" && it.error.retryable === false' \
        gateway call no.such --json
    configure wrong-token
    tried wrong-token 1 'it.ok === false && it.error.message.includes("token mismatch")' \
        gateway call health --json
    configure "$TOKEN"
}

at_work() {
    tidegate gateway call sessions.list >"$RUN/list.out" &&
        holds "$RUN/list.out" 'it.sessions.some((row) => row.hasActiveRun)'
}

# Ctrl-C in the CLI stops the run, not only the command. The provider takes the call and says
# nothing, so that there is a run to stop.
interrupt() {
    background silent "$NODE_BIN/node" -e '
        const server = require("http").createServer(() => {});
        server.listen(0, "127.0.0.1", () => console.log(server.address().port));'
    until_true 10 grep -q . "$RUN/silent.out" || die "the silent provider did not start" \
        "see $RUN/silent.err"
    gateway stopping --provider-url "http://127.0.0.1:$(cat "$RUN/silent.out")/v1" --model silent
    configure "$TOKEN"
    background interrupted "${CLIENT[@]}" agent --message stop-me \
        --session-key agent:main:stop --json
    local cli=$PID code=0
    until_true 60 at_work || die "the run did not begin" "see $RUN/interrupted.err"
    kill -INT "$cli"
    wait "$cli" || code=$?
    tidegate gateway call sessions.list >"$RUN/list.out"
    if [ $code -eq 130 ] && holds "$RUN/list.out" 'it.sessions[0].status === "killed" &&
        it.sessions[0].abortedLastRun === true && it.sessions[0].hasActiveRun === false'; then
        verdict interrupt ok "exit 130, the run ended as killed"
    else
        verdict interrupt FAIL "exit $code, expected 130 and a killed run; see $RUN/list.out"
    fi
}

drive() {
    TOKEN=$(secret)
    gateway gateway
    configure "$TOKEN"
    say "$(openclaw --version) against $("$TIDEGATE" --version) on port $PORT"
    first_light
    around
    interrupt
}

"$1"
