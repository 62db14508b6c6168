//! When streamed text is shown and saved.
//!
//! The first text goes out at once, the next after the pace, and all of it before the
//! outcome (L18, I47). Saving has a pace of its own; it never delays showing (R142).

use crate::ids::{Handle, Part, RunId};
use crate::machine::Core;
use crate::output::{Event, Output};
use crate::timers::Timer;

impl Core {
    /// Text arrived: shows it now if the pace allows, and sees that it gets saved.
    pub(crate) fn pace_text(&mut self, id: RunId) {
        if self.timers.at(Timer::TextPace(id)).is_none() {
            self.flush_text(id);
            self.arm_text_pace(id);
        }
        if self.timers.at(Timer::SavePace(id)).is_none() {
            self.arm_in(Timer::SavePace(id), self.config.save_pace_ms.max(1));
        }
    }

    fn arm_text_pace(&mut self, id: RunId) {
        if self.config.text_pace_ms > 0 {
            self.arm_in(Timer::TextPace(id), self.config.text_pace_ms);
        }
    }

    /// Publishes what has arrived and was not shown yet.
    pub(crate) fn flush_text(&mut self, id: RunId) -> bool {
        let Some(run) = self.runs.get_mut(&id) else {
            return false;
        };
        let (from, to) = (run.stream.published, run.stream.received);
        if to == from {
            return false;
        }
        run.stream.published = to;
        let handle = Handle {
            owner: run.content(),
            part: Part::Reply,
        };
        self.publish(id, Event::Text { handle, from, to });
        true
    }

    pub(crate) fn text_pace_due(&mut self, id: RunId) {
        if self.flush_text(id) {
            self.arm_text_pace(id);
        }
    }

    pub(crate) fn save_pace_due(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let to = run.stream.received;
        if to == run.stream.saved {
            return;
        }
        run.stream.saved = to;
        let (fence, epoch, at) = (run.fence(), run.epoch, self.now.wall);
        self.out(Output::Save {
            fence,
            epoch,
            to,
            at,
        });
    }

    /// Publishes an event under the run's next number (I8).
    pub(crate) fn publish(&mut self, id: RunId, event: Event) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.seq += 1;
        let (session, seq) = (run.session, run.seq);
        self.out(Output::Publish {
            session,
            run: id,
            seq,
            event,
        });
    }
}
