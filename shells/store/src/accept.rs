//! Accepting a message: the insert that happens once for a run, whatever repeats (P06).

use rusqlite::params;
use tidegate_core::{Accept, AcceptReport, Fence, Generation};
use tidegate_driver::{RunNames, StoreDone, StoredText};

use crate::codec;
use crate::fault::Step;
use crate::queue;
use crate::rows::Work;

/// The generation at which a session begins.
pub(crate) const FIRST_GENERATION: Generation = Generation(1);

impl Work<'_> {
    /// Inserts the message if its run is unknown, with the claim if one is ordered; else
    /// tells what is known of the run.
    pub(crate) fn accept(
        &self,
        accept: &Accept,
        names: &RunNames,
        message: &str,
    ) -> Step<StoreDone> {
        if !self.owns(accept.epoch) {
            return Ok(done(AcceptReport::NotOwner));
        }
        if let Some(known) = self.inbox(accept.run)? {
            // One key is one run, of one session: elsewhere it can only be another request.
            if known.body != accept.body.0 || known.session != accept.session {
                return Ok(done(AcceptReport::Conflict));
            }
            let (terminal, text) = self.receipt(accept.run)?.unzip();
            return Ok(StoreDone::Accepted {
                report: AcceptReport::Duplicate { terminal },
                text: text.unwrap_or_default(),
            });
        }
        let generation = match self.session(accept.session)? {
            Some(session) => session.generation,
            None => FIRST_GENERATION,
        };
        if generation != accept.generation {
            // The session that the order speaks of was reset: the lease did not cover that.
            return Ok(done(AcceptReport::NotOwner));
        }
        self.insert(accept, names, message)?;
        let claim = match &accept.claim {
            Some(order) => self.claim_fenced(&fence(accept, order.attempt), order, &[])?,
            None => None,
        };
        Ok(done(AcceptReport::Committed { claim }))
    }

    fn insert(&self, accept: &Accept, names: &RunNames, message: &str) -> Step<()> {
        let at = codec::to_sql(accept.at.0);
        let (session, generation) = (accept.session, accept.generation);
        self.touch_or_insert(session, &names.session_key, generation, accept.at)?;
        let (budget, budget_ms) = codec::budget_to_sql(accept.budget);
        let turn = queue::turn_to_sql(&accept.turn);
        self.sql
            .prepare_cached(
                "INSERT INTO inbox (run, session, run_key, body, budget, budget_ms, message,
                                    state, attempt, accepted_at, turn, queue, route, speaker,
                                    lane, priority)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open', 0, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(params![
                accept.run.0,
                accept.session.0,
                names.run_key,
                accept.body.0,
                budget,
                budget_ms,
                message,
                at,
                turn.kind,
                turn.queue,
                turn.route,
                turn.speaker,
                accept.lane.name(),
                queue::priority_to_sql(accept.priority),
            ])?;
        Ok(())
    }
}

fn fence(accept: &Accept, attempt: tidegate_core::Attempt) -> Fence {
    Fence {
        session: accept.session,
        generation: accept.generation,
        run: accept.run,
        attempt,
    }
}

fn done(report: AcceptReport) -> StoreDone {
    StoreDone::Accepted {
        report,
        text: StoredText::default(),
    }
}
