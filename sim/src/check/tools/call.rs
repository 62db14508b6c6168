//! One tool call, as its surroundings see it: what it may end as, and when it may be stopped.
//!
//! Owns the rules of a single call, read from the spec and not from the core (spec 7). What a
//! round of calls must come to stands with the book of rounds.

use tidegate_core::{Ask, CallEnd, CallFacts, CallKind, Config, Decision, Time, ToolEnd};

/// A point in time from which something is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) at: Time,
    /// How long the loop stood still since.
    pub(super) still_ms: u64,
    /// By how much late wakes moved what is measured (P37).
    pub(super) moved_ms: u64,
}

impl Clock {
    pub(super) const fn new(at: Time) -> Self {
        Self {
            at,
            still_ms: 0,
            moved_ms: 0,
        }
    }

    /// Whether so much may have passed.
    pub(super) fn passed(&self, now: Time, ms: u64) -> bool {
        now >= self.at.plus(ms.saturating_add(self.moved_ms))
    }

    /// Whether so much has passed certainly, and more than a tick may be late.
    pub(super) fn is_over(&self, now: Time, ms: u64, slack_ms: u64) -> bool {
        now > self.at.plus(ms.saturating_add(self.still_ms + slack_ms))
    }
}

/// What is asked of a person.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    /// Nothing, or nothing yet.
    None,
    /// Whether it may start.
    Open(Clock),
    /// Nothing more: the first word.
    Word(Decision),
}

/// Whether a checkpoint lets it start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Launch {
    None,
    Ordered,
    Durable,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) kind: CallKind,
    /// Whether it is among those that an answer may ask for.
    pub(super) room: bool,
    /// Whether a person has to be asked.
    pub(super) asks: bool,
    limit_ms: u64,
    pub(super) question: Question,
    pub(super) launch: Launch,
    pub(super) started: Option<Clock>,
    pub(super) stopped: Option<Clock>,
    /// Whether its limit had passed when it was stopped.
    late: bool,
    /// What the tool said of its end.
    pub(super) said: Option<ToolEnd>,
    /// Whether its start and its question were told, and how it was told to end.
    pub(super) told: bool,
    pub(super) asked: bool,
    pub(super) ended: Option<CallEnd>,
    pub(super) output: u64,
    pub(super) shown: u64,
}

impl Call {
    pub(super) fn new(facts: CallFacts, config: &Config, place: usize) -> Self {
        Self {
            kind: facts.kind,
            room: place < usize::from(config.tools.calls_max),
            asks: facts.guarded && config.tools.ask == Ask::Always,
            limit_ms: facts.timeout_ms.unwrap_or(config.tools.timeout_ms),
            question: Question::None,
            launch: Launch::None,
            started: None,
            stopped: None,
            late: false,
            said: None,
            told: false,
            asked: false,
            ended: None,
            output: 0,
            shown: 0,
        }
    }

    /// Whether it can be carried out at all.
    pub(super) fn may_start(&self) -> bool {
        self.kind == CallKind::Ready && self.room
    }

    /// Whether nobody has to be asked any more before it starts.
    pub(super) const fn is_allowed(&self) -> bool {
        !self.asks || matches!(self.question, Question::Word(Decision::AllowOnce))
    }

    /// Whether it runs, as far as the process knows.
    pub(super) const fn runs(&self) -> bool {
        self.started.is_some() && self.said.is_none() && self.ended.is_none()
    }

    /// It is told to stop. False if its limit has not passed: then its run goes no further.
    pub(super) fn stop(&mut self, now: Time) -> bool {
        let late = self.started.is_some_and(|it| it.passed(now, self.limit_ms));
        if self.runs() && self.stopped.is_none() {
            self.stopped = Some(Clock::new(now));
            self.late = late;
        }
        late
    }

    /// Whether it went on for too long.
    pub(super) fn is_long(&self, now: Time, config: &Config, slack_ms: u64) -> bool {
        let (since, ms) = match (self.started, self.stopped) {
            _ if !self.runs() => return false,
            (_, Some(stopped)) => (stopped, config.tools.cancel_ms),
            (Some(started), None) => (started, self.limit_ms),
            (None, None) => return false,
        };
        since.is_over(now, ms, slack_ms)
    }

    /// Whether its stop was waited for as long as it had to be.
    pub(super) fn is_given_up(&self, now: Time, config: &Config) -> bool {
        let bound = |stopped: Clock| stopped.passed(now, config.tools.cancel_ms);
        self.stopped.is_some_and(bound)
    }

    /// Whether it may end so now. One that runs and whose run ends may be called unknown
    /// sooner, one that asks and whose run another writer ended, stale: that is judged with the
    /// run.
    pub(super) fn bears_out(&self, end: CallEnd, now: Time, config: &Config) -> bool {
        let started = self.started.is_some();
        match end {
            CallEnd::Ok => started && self.said == Some(ToolEnd::Ok),
            CallEnd::Failed => match self.said {
                Some(ToolEnd::Failed) => true,
                Some(ToolEnd::Cancelled) => self.stopped.is_none(),
                _ => false,
            },
            CallEnd::TimedOut => self.late && self.said == Some(ToolEnd::Cancelled),
            CallEnd::Cancelled => self.stopped.is_some() && self.said == Some(ToolEnd::Cancelled),
            CallEnd::Unknown => started && self.said.is_none(),
            CallEnd::Skipped => !started && self.kind == CallKind::Ready,
            CallEnd::NoSuchTool => !started && self.kind == CallKind::NoSuchTool,
            CallEnd::BadArguments => !started && self.kind == CallKind::BadArguments,
            CallEnd::Denied => !started && matches!(self.question, Question::Word(Decision::Deny)),
            CallEnd::Expired => match self.question {
                Question::Open(since) => !started && now >= since.at.plus(config.tools.approval_ms),
                _ => false,
            },
            CallEnd::Stale => !started && matches!(self.question, Question::Open(_)),
        }
    }

    pub(super) fn clocks(&mut self) -> impl Iterator<Item = &mut Clock> {
        let question = match &mut self.question {
            Question::Open(since) => Some(since),
            _ => None,
        };
        self.started
            .iter_mut()
            .chain(&mut self.stopped)
            .chain(question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: CallFacts = CallFacts {
        kind: CallKind::Ready,
        guarded: true,
        timeout_ms: Some(100),
    };

    fn started(at: u64) -> Call {
        let mut call = Call::new(READY, &Config::default(), 0);
        call.started = Some(Clock::new(Time(at)));
        call
    }

    /// P12, P14, law 10: stopped means told to stop, and timed out means at its limit.
    #[test]
    fn what_a_call_may_end_as_follows_from_what_was_done_to_it() {
        let config = Config::default();
        let ends = |mut call: Call, said, end| {
            call.said = said;
            call.bears_out(end, Time(1_000), &config)
        };
        let cancelled = Some(ToolEnd::Cancelled);
        let own = started(0);
        assert!(ends(own, cancelled, CallEnd::Failed));
        assert!(!ends(own, cancelled, CallEnd::Cancelled));
        let (mut early, mut late) = (own, own);
        assert!(!early.stop(Time(99)) && late.stop(Time(100)));
        assert!(!ends(early, cancelled, CallEnd::TimedOut));
        assert!(ends(early, cancelled, CallEnd::Cancelled));
        assert!(ends(late, cancelled, CallEnd::TimedOut));
        assert!(ends(late, Some(ToolEnd::Ok), CallEnd::Ok));
        assert!(!ends(late, Some(ToolEnd::Ok), CallEnd::Unknown));
        assert!(!ends(own, None, CallEnd::Skipped));
    }

    /// P27: expired is at the limit and not before it, denied is what a person said.
    #[test]
    fn expired_is_not_denied() {
        let config = Config::default();
        let mut call = Call::new(READY, &config, 0);
        assert!(call.asks && !call.is_allowed());
        call.question = Question::Open(Clock::new(Time(5)));
        let at = |ms| Time(5 + config.tools.approval_ms - 1 + ms);
        assert!(!call.bears_out(CallEnd::Expired, at(0), &config));
        assert!(call.bears_out(CallEnd::Expired, at(1), &config));
        assert!(!call.bears_out(CallEnd::Denied, at(1), &config));
        call.question = Question::Word(Decision::Deny);
        assert!(call.bears_out(CallEnd::Denied, at(0), &config));
        assert!(!call.bears_out(CallEnd::Expired, at(1), &config));
    }
}
