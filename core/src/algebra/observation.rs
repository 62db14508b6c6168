//! What a terminal lifecycle event says, read into one reason (spec 1.4, vector 16.2).
//!
//! Owns the reading and the two questions of grace: may a conversation believe this end at
//! once, and may a wait. It keeps no event and starts no grace; the words come from the shell
//! as closed facts (law 2).

use serde::{Deserialize, Serialize};

use super::{Ended, Reason, Status};
use crate::time::Wall;

/// The phase of a terminal event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EndPhase {
    /// The work came to its end.
    End,
    /// The work broke. It may be tried again (R129).
    Error,
}

/// The status that an event states in so many words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventStatus {
    /// It went well.
    Ok,
    /// It did not.
    Error,
    /// A limit passed.
    Timeout,
    /// Somebody stopped it.
    Cancelled,
    /// A newer writer took the session.
    Superseded,
}

/// Why the work stopped, as the event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StopWord {
    /// The model had finished.
    EndTurn,
    /// A limit passed.
    Timeout,
    /// Something went wrong.
    Error,
    /// A client's request.
    Rpc,
    /// A stop command. Some providers also call the natural end of an answer so; then the
    /// event is no failure, and it is no stop.
    Stop,
    /// The gateway restarts.
    Restart,
    /// Broken off, without saying by whom.
    Aborted,
    /// A newer writer.
    Superseded,
    /// A word that nothing is decided by.
    Other,
}

/// Where a run was when its limit passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimeoutPhase {
    /// It waited for its turn.
    Queue,
    /// Its turn had begun, no model had been asked.
    Preflight,
    /// The model had been asked.
    Provider,
    /// The model had answered, the turn was being closed.
    PostTurn,
    /// The gateway closed while somebody waited.
    GatewayDraining,
}

/// What a run was seen to be doing at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Liveness {
    /// It worked.
    Working,
    /// It had parked itself.
    Paused,
    /// It stood before something that it can't pass.
    Blocked,
    /// It had been left behind.
    Abandoned,
}

/// The facts of one terminal event. Make one with [`Observation::new`] and set what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Observation {
    /// Its phase.
    pub phase: EndPhase,
    /// Whether it is flagged as broken off.
    pub aborted: bool,
    /// The status, if it states one.
    pub status: Option<EventStatus>,
    /// Why the work stopped, if it says so.
    pub stop: Option<StopWord>,
    /// Where a limit passed, if one did.
    pub timeout_phase: Option<TimeoutPhase>,
    /// Whether a model request is known to have gone out.
    pub provider_started: bool,
    /// What the run was seen to be doing, if anybody looked.
    pub liveness: Option<Liveness>,
    /// Whether the owner of the run says that no attempt comes any more (R130, I7).
    pub execution_settled: bool,
    /// Whether the last model to fall back on has failed.
    pub fallback_exhausted: bool,
    /// When the work ended.
    pub ended_at: Wall,
}

impl Observation {
    /// A terminal event that says nothing but its phase and its time.
    #[must_use]
    pub const fn new(phase: EndPhase, ended_at: Wall) -> Self {
        Self {
            phase,
            aborted: false,
            status: None,
            stop: None,
            timeout_phase: None,
            provider_started: false,
            liveness: None,
            execution_settled: false,
            fallback_exhausted: false,
            ended_at,
        }
    }

    /// The reason for which the run ended, by the table of spec 1.4: the first row that fits.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        let (claim, stop) = (self.claim(), self.stopped_by());
        match (stop, self.liveness) {
            _ if self.hit_a_hard_limit(claim) => Reason::HardTimeout,
            (Some(StopWord::Superseded), _) => Reason::Superseded,
            (_, Some(Liveness::Blocked)) => Reason::Blocked,
            (Some(StopWord::Aborted), _) => Reason::Aborted,
            (Some(StopWord::Restart), _) => Reason::Cancelled,
            (Some(StopWord::Rpc | StopWord::Stop), _) if !matches!(claim, Status::Ok) => {
                Reason::Cancelled
            }
            (_, Some(Liveness::Abandoned)) => Reason::Abandoned,
            _ => match claim {
                Status::Timeout => Reason::TimedOut,
                Status::Error => Reason::Failed,
                Status::Ok => Reason::Completed,
            },
        }
    }

    /// The end that this event tells of, to be merged with what is known.
    #[must_use]
    pub const fn ended(&self) -> Ended {
        Ended {
            reason: self.reason(),
            at: self.ended_at,
        }
    }

    /// Whether a conversation shows this end at once (R128). Only a plain failure that may be
    /// tried again waits for its grace (R129); a settled one does not (R130, R131), and an event
    /// that is flagged as aborted is none.
    #[must_use]
    pub const fn is_definitive(&self) -> bool {
        matches!(self.phase, EndPhase::End)
            || self.execution_settled
            || self.fallback_exhausted
            || !matches!(self.reason(), Reason::Failed)
    }

    /// The status that a wait is told. A bare abort says neither who nor why, and until the run
    /// is settled it may as well be a limit that passed (R132).
    #[must_use]
    pub const fn wait_status(&self) -> Status {
        if self.is_bare_abort() {
            Status::Timeout
        } else {
            self.reason().status()
        }
    }

    /// Whether waits give a retry its grace before they take this end (R129, R132): unsettled
    /// errors, also those that a conversation shows at once, and unsettled timeouts.
    #[must_use]
    pub const fn is_held_for_waits(&self) -> bool {
        !self.execution_settled
            && match self.phase {
                EndPhase::Error => !self.fallback_exhausted,
                EndPhase::End => matches!(self.wait_status(), Status::Timeout),
            }
    }

    /// The status that the event claims by all that it says, before its reason is known.
    const fn claim(&self) -> Status {
        match (self.phase, self.status, self.stop) {
            (_, Some(EventStatus::Timeout), _) | (_, _, Some(StopWord::Timeout)) => Status::Timeout,
            _ if self.timeout_phase.is_some() => Status::Timeout,
            _ if self.aborted => Status::Error,
            (_, _, Some(StopWord::Error)) | (EndPhase::Error, _, _) => Status::Error,
            (EndPhase::End, None | Some(EventStatus::Ok), _) => Status::Ok,
            (EndPhase::End, Some(_), _) => Status::Error,
        }
    }

    /// Who stopped the work. A word that names a stop is the best witness, then the status,
    /// then the flag; but where a limit passed, the flag is only how the limit took effect.
    const fn stopped_by(&self) -> Option<StopWord> {
        match (self.stop, self.status) {
            (
                Some(
                    StopWord::Rpc
                    | StopWord::Stop
                    | StopWord::Restart
                    | StopWord::Aborted
                    | StopWord::Superseded,
                ),
                _,
            ) => self.stop,
            (_, Some(EventStatus::Superseded)) => Some(StopWord::Superseded),
            (_, Some(EventStatus::Cancelled)) => Some(StopWord::Stop),
            _ if self.aborted && !matches!(self.claim(), Status::Timeout) => {
                Some(StopWord::Aborted)
            }
            _ => None,
        }
    }

    /// A limit is hard if it passed after the run's turn had begun. A restart that stops a run
    /// at its model is no limit of the run.
    const fn hit_a_hard_limit(&self, claim: Status) -> bool {
        match (self.timeout_phase, claim) {
            (
                Some(TimeoutPhase::Preflight | TimeoutPhase::Provider | TimeoutPhase::PostTurn),
                _,
            ) => true,
            (_, Status::Timeout) => {
                self.provider_started && !matches!(self.stop, Some(StopWord::Restart))
            }
            _ => false,
        }
    }

    const fn is_bare_abort(&self) -> bool {
        !self.execution_settled
            && self.stop.is_none()
            && self.status.is_none()
            && matches!(self.reason(), Reason::Aborted)
    }
}
