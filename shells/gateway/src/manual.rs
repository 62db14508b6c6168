//! The long texts of `--help`: what a command does, examples, exit codes.

use crate::exit::Exit;

/// What `tidegate gateway run` can end with.
pub const RUN_EXITS: [Exit; 5] = [
    Exit::Ok,
    Exit::Failed,
    Exit::Usage,
    Exit::Configuration,
    Exit::Halt,
];

/// What `tidegate agent` can end with.
pub const AGENT_EXITS: [Exit; 6] = [
    Exit::Ok,
    Exit::Failed,
    Exit::Usage,
    Exit::Unreachable,
    Exit::Configuration,
    Exit::Interrupted,
];

/// What `tidegate chat` can end with.
pub const CHAT_EXITS: [Exit; 6] = AGENT_EXITS;

/// What `tidegate config` can end with.
pub const CONFIG_EXITS: [Exit; 3] = [Exit::Ok, Exit::Usage, Exit::Configuration];

/// What the simulator's commands can end with.
pub const SIM_EXITS: [Exit; 9] = [
    Exit::Ok,
    Exit::Failed,
    Exit::Usage,
    Exit::Violation,
    Exit::Liveness,
    Exit::Divergence,
    Exit::Halt,
    Exit::Unreached,
    Exit::Endless,
];

/// What `tidegate sim replay` can end with.
pub const SIM_REPLAY_EXITS: [Exit; 7] = [
    Exit::Ok,
    Exit::Usage,
    Exit::Violation,
    Exit::Liveness,
    Exit::Divergence,
    Exit::Halt,
    Exit::Endless,
];

/// What `tidegate sim audit` can end with.
pub const SIM_AUDIT_EXITS: [Exit; 3] = [Exit::Ok, Exit::Usage, Exit::Violation];

/// The foot of a manual page.
#[must_use]
pub fn after(examples: &str, exits: &[Exit]) -> String {
    format!(
        "Examples:\n{examples}\n\nExit codes:\n{}",
        Exit::table(exits)
    )
}

/// `tidegate`.
pub const PROGRAM: &str = "\
Tidegate is an agent gateway: messages come in, become runs of a model, and leave as streamed \
replies. One deterministic state machine takes every decision, so a timing bug replays from a \
seed, and a message that was accepted ends in exactly one visible outcome.

Start a gateway in one terminal with `tidegate gateway run`, and talk to it from another: \
`tidegate chat` is a conversation, `tidegate agent -m \"hello\"` one message.

Results go to stdout, everything else to stderr. TIDEGATE_LOG sets what is logged (default: \
warn; for example info, or tidegate_server=debug).";

/// Its examples.
pub const PROGRAM_EXAMPLES: &str = "  tidegate gateway run
  tidegate chat
  tidegate agent -m \"hello\"
  tidegate sim run --seeds 0..2000";

/// `tidegate gateway`.
pub const GATEWAY: &str = "\
Run the gateway, or ask a running one. WebSocket and HTTP share one port on 127.0.0.1.";

/// Its examples.
pub const GATEWAY_EXAMPLES: &str = "  tidegate gateway run
  tidegate gateway health
  tidegate gateway call sessions.list";

/// `tidegate gateway run`.
pub const RUN: &str = "\
Run the gateway in the foreground until SIGTERM or Ctrl-C. Either stops it in order: nothing new \
begins, runs at work may end within the drain's budget (tidegate.limits.drainBudgetMs, 300 s), and \
accepted messages that have no answer yet run after the next start. A second signal ends the \
waiting, a third the process, with exit code 1; nothing that was accepted is lost then either.

Whoever kills the gateway some time after the signal should be named by \
tidegate.limits.supervisorStopMs: the drain then ends before that. A supervisor that listens at \
NOTIFY_SOCKET (systemd: Type=notify) is told when the gateway listens and when it stops, and is \
asked to wait for the drain.

The state directory is made at the first start, readable by you alone, with the token that \
clients must show. One gateway at a time owns a state directory.

Settings come from tidegate.json5 in the state directory, or from the file that --config names; \
variables win over it, and flags over both. A configuration with a mistake is refused before \
anything is made. Where no provider is named, a built-in demo model answers, and says so in every \
reply.";

/// Its examples.
pub const RUN_EXAMPLES: &str = "  tidegate gateway run
  tidegate gateway run --port 0 --state-dir /tmp/tidegate
  TIDEGATE_PROVIDER_KEY=... tidegate gateway run \\
      --provider-url https://api.openai.com/v1 --model gpt-5-mini
  tidegate gateway run --provider-url http://127.0.0.1:11434/v1 --model qwen3 \\
      --provider-timeout 60 --provider-retries 2";

/// `tidegate gateway health`.
pub const HEALTH: &str = "\
Connect to a running gateway and ask for its health. Prints one line, or the gateway's whole \
answer with --json. A gateway that is about to stop lets nothing new begin: it is well, and the \
line begins with `draining` instead of `ok` (with --json: `\"draining\": true`).";

/// Its examples.
pub const HEALTH_EXAMPLES: &str = "  tidegate gateway health
  tidegate gateway health --url ws://127.0.0.1:18790 --json";

/// `tidegate gateway call`.
pub const CALL: &str = "\
Call one method of a running gateway and print the payload of its first response as JSON. A \
wrong method or wrong parameters are answered by the gateway's own error.";

/// Its examples.
pub const CALL_EXAMPLES: &str = "  tidegate gateway call status
  tidegate gateway call sessions.list --params '{\"limit\":5}'
  tidegate gateway call agent.wait --params '{\"runId\":\"build-17\",\"timeoutMs\":0}'";

/// `tidegate agent`.
pub const AGENT: &str = "\
Send a message to the agent and print its reply, in a terminal as it comes. A message to a session \
that is busy waits for its turn.

Ctrl-C stops the run (chat.abort), waits until the gateway has ended it, and exits with 130. A \
second Ctrl-C exits at once and leaves the end to the gateway. If the connection breaks after the \
message was accepted, the run goes on: send the same message with the same --idempotency-key, and \
you get its answer and no second run.

If the model fails for a while, the gateway asks it again, and standard error says why and when. A \
reply of which a terminal shows a part then begins anew, on a line of its own, and is marked so.

What the model runs is one line on standard error when it begins and one when it has ended. Where a \
person must allow it, that line says by which command. What a terminal shows of the model's words \
before its tool calls stays; into a pipe goes the final reply alone.

With --json the gateway's final answer is printed, with the error beside it if there is one. Its \
`status` is \"ok\" if and only if the run completed.";

/// Its examples.
pub const AGENT_EXAMPLES: &str = "  tidegate agent -m \"hello\"
  tidegate agent -m \"and the second point?\" --session-key agent:main:notes
  tidegate agent -m \"summarise\" --idempotency-key build-17 --timeout 120 --json";

/// `tidegate chat`.
pub const CHAT: &str = "\
Talk with the agent in a plain terminal, or through a pipe. Each line of standard input is a \
message; answers go to standard output as they come. Everything else, such as where a message \
stands and what was said before, goes to standard error.

A line may be typed while a run is at work. It is sent at once; the session's queue mode decides \
what becomes of it, and one line says it: queued behind others, given to the run at work or following it, \
interrupting it, answered together with another message, or dropped because the queue is full.

These lines are for the gateway, which carries them out and answers:

  /queue                  how this session queues, and what waits
  /queue MODE [OPTIONS]   queue so from now on: steer, followup, collect, interrupt, or default;
                          options are debounce:500ms, cap:N and drop:old|new|summarize
  /queue MODE MESSAGE     send one message in that mode
  /stop                   stop the run at work and what waits
  /new [MESSAGE]          begin a new conversation in this session; /reset does the same

Where the model asks to run a command that a person must allow, the chat shows it and asks. \
/approve and /deny answer for the oldest one, with an id behind them for that one; typed in a \
terminal, y and n do the same.

And these for the chat: /help says what can be typed, /quit leaves while the gateway goes on. At \
the end of input the chat waits for what was asked, and leaves. Ctrl-C stops the run at work; \
pressed again, or when nothing is at work, it leaves.

When the connection is lost, the chat connects again, up to 64 times in some five minutes. It goes \
on where it was, also after a restart of the gateway: no answer is missed, none is told twice, and \
messages that the gateway had not acknowledged are sent again under their names.

Where standard output is no terminal, there is no prompt and no colour, and each answer is printed \
whole once it is complete. On a terminal, control characters in a text are left out: a model \
cannot steer the screen. The exit code is that of the last message: 0 if it was answered.";

/// Its examples.
pub const CHAT_EXAMPLES: &str = "  tidegate chat
  tidegate chat --session notes
  tidegate chat --url ws://127.0.0.1:18790 --token \"$TOKEN\"
  echo 'what changed since build 16?' | tidegate chat --session build-17 > answer.txt";

/// `tidegate approvals`.
pub const APPROVALS: &str = "\
Tool calls that wait for a person: see them, allow them, deny them. A call waits where the model \
may run commands (tools.exec.security) and a person must allow each (tools.exec.ask). The first \
answer counts. Without one, a call is not run after 30 minutes; when the gateway ends, what waits \
is void, and the model is told so.";

/// `tidegate approvals list`.
pub const APPROVALS_LIST: &str = "\
Show the tool calls that wait, oldest first, one a line: the id, the session, how long the call \
waits still, and the whole command. What is not printable in a command is shown as an escape.";

/// `tidegate approvals allow` and `tidegate approvals deny`.
pub const APPROVALS_DECIDE: &str = "\
Let a tool call run, this once, or do not let it run. The first answer counts: the same one again \
is well, the other one is refused. So is one for a call that does not wait any more.";

/// Their examples.
pub const APPROVALS_EXAMPLES: &str = "  tidegate approvals list
  tidegate approvals allow em0ta5vb
  tidegate approvals deny em0ta5vb --json";

/// `tidegate config`.
pub const CONFIG: &str = "\
Check the configuration, show what it comes to, or print its schema. The file is JSON5, by default \
tidegate.json5 in the state directory; variables win over it, and flags over both. Nothing is \
started or made.";

/// Its examples.
pub const CONFIG_EXAMPLES: &str = "  tidegate config check
  tidegate config show --config ./tidegate.json5
  tidegate config schema > tidegate.schema.json";

/// `tidegate config check`.
pub const CONFIG_CHECK: &str = "\
Say what is wrong with the configuration that `tidegate gateway run` would use with the same flags \
and variables: each mistake by file, line and column, with what was expected and the nearest right \
name. Settings of the past are no mistakes; a warning says what replaced them.

With --json stdout is one object: ok, file, problems, warnings.";

/// Its examples.
pub const CONFIG_CHECK_EXAMPLES: &str = "  tidegate config check
  tidegate config check --config ./tidegate.json5 --json";

/// `tidegate config show`.
pub const CONFIG_SHOW: &str = "\
Show every setting, its value, and who set it: the default, a line of the file, a variable or a \
flag. Secrets are shown as ***.";

/// Its examples.
pub const CONFIG_SHOW_EXAMPLES: &str = "  tidegate config show
  tidegate config show --port 18790 --json";

/// `tidegate config schema`.
pub const CONFIG_SCHEMA: &str = "\
Print the JSON Schema of the configuration file, for editors: they complete names and show what \
they mean.";

/// Its examples.
pub const CONFIG_SCHEMA_EXAMPLES: &str = "  tidegate config schema > tidegate.schema.json";

/// `tidegate sim`.
pub const SIM: &str = "\
Run the gateway's core in a simulated world: modelled provider, store, clients, crashes and \
restarts, every choice drawn from a seed. No network, no files, no clock: one seed is one \
history, on every machine.";

/// Its examples.
pub const SIM_EXAMPLES: &str = "  tidegate sim run --seeds 0..2000
  tidegate sim replay --seed 4711
  tidegate sim audit";

/// `tidegate sim run`.
pub const SIM_RUN: &str = "\
Run a block of seeds, with all checkers on, and end with a summary. On a terminal, progress is \
shown with inputs a second.

What breaks a promise is shrunk before it is printed: its code and one sentence, a timeline of at \
most twenty lines of the least that fails alike, and two lines that run it again, one with the \
shrunk case as a short recording and one with the whole seed. Seeds that fail with the same code \
are one finding, and the lowest is shown. The exit code is that of the lowest failing seed.

--inputs and --until-plateau end a campaign early; where it ends does not depend on the number of \
threads. From 2000 seeds on, a campaign that never reached a mark, a declared step of a run, or an \
operation of the core is red too, and says which: it would prove little.

With --emit scenario, each finding is also written as a script that fails with its code; take its \
fault line out, or mend the defect, and it passes. --emit recording writes a file for `tidegate \
sim replay --file`. If PATH is a folder, files are named CODE-SEED in it; else it is the file for \
the finding of the lowest seed. A file with other content is never overwritten.

With --json stdout is exactly one line, an object: seeds, violations, simulatedHours, \
simulatedHoursPerSecond, inputsPerSecond, digest. The digest is the same for the same seeds and \
build, whatever the machine and the number of threads.

With --fault the system around the core is broken on purpose, to see that the checkers find it; \
--fault list names the faults.";

/// Its examples.
pub const SIM_RUN_EXAMPLES: &str = "  tidegate sim run --seeds 0..2000
  tidegate sim run --seeds 0..100000 --threads 8 --json
  tidegate sim run --seeds 0..100000 --inputs 50000000
  tidegate sim run --until-plateau
  tidegate sim run --seeds 0..500 --fault late-append --emit scenario
  tidegate sim run --fault list";

/// `tidegate sim replay`.
pub const SIM_REPLAY: &str = "\
Run a seed or a recording again, twice, and print what it did. Should the two runs differ, the \
first step that differs is named. What breaks a promise is told with what led to it.

A recording is the string that a finding was printed with, or a file that holds it; it carries \
its fault. One of another format is refused: it means what the build that made it asked.

A seed also prints its drawn character and its digest, the same for the same build everywhere.";

/// Its examples.
pub const SIM_REPLAY_EXAMPLES: &str = "  tidegate sim replay --seed 4711
  tidegate sim replay --seed 10 --fault late-append
  tidegate sim replay --fault list
  tidegate sim replay --file row-unclaimed-10.recording --trace";

/// `tidegate sim audit`.
pub const SIM_AUDIT: &str = "\
Judge the judge: plant each fault in turn, and print how many seeds it took to find it, as what, \
how small it got in entries of a log, and how small a person would write it. It is red if a fault \
is not found, if the canary passes (a fault that every seed must find), if a case shrinks onto \
another code, or to more than one and a half times what a person would write.";

/// Its examples.
pub const SIM_AUDIT_EXAMPLES: &str = "  tidegate sim audit
  tidegate sim audit --within 200";

/// What the scenario commands can end with.
pub const SCENARIO_EXITS: [Exit; 8] = [
    Exit::Ok,
    Exit::Failed,
    Exit::Usage,
    Exit::Violation,
    Exit::Liveness,
    Exit::Divergence,
    Exit::Halt,
    Exit::Endless,
];

/// `tidegate scenario`.
pub const SCENARIO: &str = "\
Run timelines written as text: what clients, the model, the store, the process and the clock do, \
and what must come of it. They run over the gateway's core alone, in simulated time, with all \
checkers on. docs/scenarios.md tells how one is written.";

/// `tidegate scenario run`.
pub const SCENARIO_RUN: &str = "\
Run scenario files, each as it is written. Prints one line for each, what is wrong below it, and \
a summary; the exit code is that of the first one that failed. A file that is not understood is \
refused with line, column and the nearest valid name.

With --orders, everything that falls on one instant also changes places. With \
--crash-at-every-step, the process is also killed at every single step, as a crash and as a loss \
of power, and started again after a second.";

/// Its examples.
pub const SCENARIO_EXAMPLES: &str = "  tidegate scenario run
  tidegate scenario run --orders --crash-at-every-step
  tidegate scenario run --trace scenarios/idle/a-blocked-loop.scenario";
