//! The scripted tools: what each call puts out once it is started, and how it ends.
//!
//! Owns the tools of one life of the process. A tool that is told to stop changes its script,
//! or goes on as if it had not been told.

use std::collections::{BTreeMap, VecDeque};

use tidegate_core::{CallId, Ticket, ToolEnd, ToolFact};

use super::ast::{Scenario, Step, Work};
use super::calls::which;
use super::cast::Cast;

/// What a tool does of which nothing is said.
const PLAIN: [Work; 2] = [
    Work::Outputs {
        count: 1,
        apart_ms: 10,
        bytes: 20,
    },
    Work::Ends(ToolEnd::Ok),
];

#[derive(Clone, Copy, Debug)]
enum What {
    Output(u64),
    End(ToolEnd),
}

/// A tool that was started.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) ticket: Ticket,
    call: String,
    /// Facts of an older version are void.
    pub(super) version: u32,
    over: bool,
    sent: u64,
    /// When the last fact was due.
    due: u64,
    left: VecDeque<(u64, What)>,
}

impl Job {
    /// When the next fact is due.
    pub(super) fn next_at(&self) -> Option<u64> {
        let &(gap, _) = self.left.front()?;
        (!self.over).then_some(self.due.saturating_add(gap))
    }

    /// The fact that is due.
    pub(super) fn take(&mut self, version: u32) -> Option<ToolFact> {
        if self.over || self.version != version {
            return None;
        }
        let (gap, what) = self.left.pop_front()?;
        self.due = self.due.saturating_add(gap);
        Some(match what {
            What::Output(bytes) => {
                self.sent = self.sent.saturating_add(bytes);
                ToolFact::Output { to: self.sent }
            }
            What::End(end) => {
                self.over = true;
                ToolFact::Ended(end)
            }
        })
    }
}

/// All tools, and what the scenario says of those to come.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) jobs: Vec<Job>,
    runs: BTreeMap<String, Vec<Vec<Work>>>,
    on_stop: BTreeMap<String, Vec<Vec<Work>>>,
    made: BTreeMap<String, usize>,
    stopped: BTreeMap<String, usize>,
}

impl Jobs {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut jobs = Self::default();
        for step in scenario.timeline.iter().flat_map(|block| &block.steps) {
            let (scripts, call, works) = match step {
                Step::Runs { call, works } => (&mut jobs.runs, call, works),
                Step::OnStop { call, works } => (&mut jobs.on_stop, call, works),
                _ => continue,
            };
            scripts.entry(call.clone()).or_default().push(works.clone());
        }
        jobs
    }

    /// A tool is started. Gives its index.
    pub(super) fn start(&mut self, ticket: Ticket, call: CallId, now: u64, cast: &Cast) -> usize {
        let call = cast.call_name(call).to_owned();
        let works = which(&self.runs, &mut self.made, call.clone()).unwrap_or(&PLAIN);
        self.jobs.push(Job {
            ticket,
            call,
            version: 0,
            over: false,
            sent: 0,
            due: now,
            left: facts(works),
        });
        self.jobs.len() - 1
    }

    /// A tool is told to stop. Gives its index, if its script changes by that.
    pub(super) fn stop(&mut self, ticket: Ticket, now: u64) -> Option<usize> {
        let is_it = |job: &Job| job.ticket == ticket && !job.over;
        let at = self.jobs.iter().rposition(is_it)?;
        let job = &mut self.jobs[at];
        let works = which(&self.on_stop, &mut self.stopped, job.call.clone())
            .unwrap_or(&[Work::Ends(ToolEnd::Cancelled)]);
        if works.is_empty() {
            return None;
        }
        job.version += 1;
        job.due = now;
        job.left = facts(works);
        Some(at)
    }

    /// The process is gone, and its tools with it.
    pub(super) fn died(&mut self) {
        for job in &mut self.jobs {
            job.over = true;
        }
    }
}

/// The facts of a script, each with the time since the one before it.
fn facts(works: &[Work]) -> VecDeque<(u64, What)> {
    let mut facts = VecDeque::new();
    let mut pause: u64 = 0;
    for &work in works {
        let mut put = |gap: u64, what| {
            facts.push_back((std::mem::take(&mut pause).saturating_add(gap), what));
        };
        match work {
            Work::Outputs {
                count,
                apart_ms,
                bytes,
            } => (0..count).for_each(|_| put(apart_ms, What::Output(bytes))),
            Work::Ends(end) => put(0, What::End(end)),
            Work::Pause(ms) => pause = pause.saturating_add(ms),
            Work::Silence => {}
        }
    }
    facts
}
