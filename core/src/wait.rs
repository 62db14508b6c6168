//! `agent.wait`: somebody wants to know how a run ends (R4, R145, spec 1.6).
//!
//! A wait is passive: it never changes the run (I58, P09). It ends with the run's end, with
//! its own deadline, or when its caller leaves. A run that is not held is asked of the store.

use alloc::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{Attempt, ContentOwner, OrderKind, RequestId, RunId, Subject, Ticket};
use crate::input::LookupReport;
use crate::machine::Core;
use crate::outcome::Terminal;
use crate::output::{Answer, Output, Rejection, WaitResult};
use crate::time::Time;
use crate::timers::Timer;

/// What the store said about a run that is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Known {
    /// Nothing yet.
    Asked,
    /// It could not tell.
    Unsure,
    /// Yes or no.
    Sure(bool),
}

/// An open wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Wait {
    run: RunId,
    deadline: Time,
    known: Known,
}

/// All open waits, by request and by run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Waits {
    by_request: BTreeMap<RequestId, Wait>,
    by_run: BTreeMap<RunId, BTreeSet<RequestId>>,
}

impl Waits {
    pub(crate) fn len(&self) -> usize {
        self.by_request.len()
    }

    pub(crate) fn holds(&self, request: RequestId) -> bool {
        self.by_request.contains_key(&request)
    }

    fn insert(&mut self, request: RequestId, wait: Wait) {
        self.by_run.entry(wait.run).or_default().insert(request);
        self.by_request.insert(request, wait);
    }

    fn remove(&mut self, request: RequestId) -> Option<Wait> {
        let wait = self.by_request.remove(&request)?;
        if let Some(requests) = self.by_run.get_mut(&wait.run) {
            requests.remove(&request);
            if requests.is_empty() {
                self.by_run.remove(&wait.run);
            }
        }
        Some(wait)
    }

    /// The store holds this run, whatever it said before: it was accepted meanwhile.
    pub(crate) fn is_known(&mut self, run: RunId) {
        for request in self.of_run(run) {
            if let Some(wait) = self.by_request.get_mut(&request) {
                wait.known = Known::Sure(true);
            }
        }
    }

    pub(crate) fn of_run(&self, run: RunId) -> alloc::vec::Vec<RequestId> {
        self.by_run
            .get(&run)
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.by_request.keys().copied()
    }

    /// Whether both sides hold the same waits.
    pub(crate) fn agree(&self) -> bool {
        self.by_run.values().map(BTreeSet::len).sum::<usize>() == self.by_request.len()
            && self.by_request.iter().all(|(request, wait)| {
                self.by_run
                    .get(&wait.run)
                    .is_some_and(|requests| requests.contains(request))
            })
    }
}

impl Core {
    /// Opens a wait. A peek at a held run is answered at once.
    pub(crate) fn wait(&mut self, request: RequestId, run: RunId, timeout_ms: Option<u64>) {
        if self.waits.holds(request) {
            self.counts.reused_requests += 1;
            return;
        }
        if !self.is_open() {
            let answer = Answer::Rejected(Rejection::Draining);
            return self.out(Output::Respond { request, answer });
        }
        if self.waits.len() >= self.config.waits_cap as usize {
            let answer = Answer::Rejected(Rejection::Busy);
            return self.out(Output::Respond { request, answer });
        }
        let timeout_ms = timeout_ms.unwrap_or(self.config.wait_default_ms);
        let deadline = self.now.time.plus(timeout_ms);
        let held = self.runs.contains_key(&run);
        let (known, alarm) = if held {
            (Known::Sure(true), deadline)
        } else {
            // The store's answer may take a moment longer than the wait itself.
            (
                Known::Asked,
                deadline.max(self.now.time.plus(self.config.wait_lookup_ms)),
            )
        };
        self.waits.insert(
            request,
            Wait {
                run,
                deadline,
                known,
            },
        );
        if self.is_queued_chat(run) {
            return self.end_wait(request, WaitResult::Pending);
        }
        if held && timeout_ms == 0 {
            return self.wait_expired(request);
        }
        self.arm(Timer::Wait(request), alarm);
        if !held {
            let ticket = lookup_ticket(request);
            self.out(Output::Lookup { ticket, run });
        }
    }

    /// What the store knows of a run.
    pub(crate) fn looked_up(&mut self, ticket: Ticket, report: LookupReport) {
        let request = match ticket.subject {
            Subject::Run(run) => return self.end_looked_up(run, ticket, &report),
            Subject::Request(request) => request,
            Subject::Session(_) => {
                self.counts.stale_store += 1;
                return;
            }
        };
        let content = ContentOwner::Request(request);
        if !self.waits.holds(request) || ticket != lookup_ticket(request) {
            self.counts.stale_store += 1;
        } else if let LookupReport::Ended(terminal) = report {
            self.end_wait(request, WaitResult::Ended { terminal, content });
        } else {
            let known = match report {
                LookupReport::Open => Known::Sure(true),
                LookupReport::Unknown => Known::Sure(false),
                LookupReport::Refused(_) | LookupReport::Ended(_) => Known::Unsure,
            };
            self.wait_goes_on(request, known);
        }
        if matches!(report, LookupReport::Ended(_)) {
            self.out(Output::Release { owner: content });
        }
    }

    /// The store's word is in and the run has not ended: the wait's own deadline counts.
    fn wait_goes_on(&mut self, request: RequestId, known: Known) {
        let Some(wait) = self.waits.by_request.get_mut(&request) else {
            return;
        };
        wait.known = known;
        let deadline = wait.deadline;
        if deadline <= self.now.time {
            self.wait_expired(request);
        } else {
            self.arm(Timer::Wait(request), deadline);
        }
    }

    /// The wait had its time. It says nothing about the run (R146).
    pub(crate) fn wait_expired(&mut self, request: RequestId) {
        let Some(wait) = self.waits.by_request.get(&request) else {
            return;
        };
        let known = if self.runs.contains_key(&wait.run) {
            Some(true)
        } else {
            match wait.known {
                Known::Sure(known) => Some(known),
                Known::Asked | Known::Unsure => None,
            }
        };
        let decided = self.decided(wait.run);
        self.end_wait(request, WaitResult::TimedOut { known, decided });
    }

    pub(crate) fn end_wait(&mut self, request: RequestId, result: WaitResult) {
        self.timers.disarm(Timer::Wait(request));
        if let Some(wait) = self.waits.remove(request) {
            self.out(Output::Respond {
                request,
                answer: Answer::Wait {
                    run: wait.run,
                    result,
                },
            });
        }
    }

    /// The run has ended: tells everybody who waits for it.
    pub(crate) fn wake_waits(&mut self, run: RunId, terminal: Terminal, content: ContentOwner) {
        for request in self.waits.of_run(run) {
            self.end_wait(request, WaitResult::Ended { terminal, content });
        }
    }

    /// A caller went away. Only its waits end; a run goes on without it (R200).
    pub(crate) fn leave(&mut self, request: RequestId) {
        self.timers.disarm(Timer::Wait(request));
        self.waits.remove(request);
    }
}

const fn lookup_ticket(request: RequestId) -> Ticket {
    Ticket {
        subject: Subject::Request(request),
        order: OrderKind::Lookup,
        attempt: Attempt(0),
        ordinal: 0,
    }
}
