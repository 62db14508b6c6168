//! What the core asks after: a session with its unfinished runs, and one run by its id.

use rusqlite::{OptionalExtension, Row};
use tidegate_core::{
    Attempt, Fingerprint, Generation, LoadReport, LookupReport, OpenRun, QueueOverride, RunId,
    SessionId,
};
use tidegate_driver::{RunNames, StoreDone, StoredText};

use crate::accept::FIRST_GENERATION;
use crate::codec;
use crate::fault::Step;
use crate::queue;
use crate::rows::{Work, wall};

impl Work<'_> {
    /// A session's lease, generation, queue settings and open runs in the order of their acceptance.
    pub(crate) fn load(&self, session: SessionId) -> Step<StoreDone> {
        if self.own != self.owner {
            return Ok(StoreDone::Loaded {
                report: LoadReport::NotOwner,
                names: Vec::new(),
            });
        }
        let (generation, queue) = self.generation_and_queue(session)?;
        let mut statement = self.sql.prepare_cached(
            "SELECT i.run, i.body, i.budget, i.budget_ms, i.left_ms, i.claimed_at, i.saved_at,
                    i.accepted_at, i.attempt, i.turn, i.queue, i.route, i.speaker, i.lane,
                    i.priority, i.along, i.run_key, s.session_key
             FROM inbox i JOIN sessions s ON s.session = i.session
             WHERE i.session = ?1 AND i.state = 'open' ORDER BY i.ordinal",
        )?;
        let (mut open, mut names) = (Vec::new(), Vec::new());
        let mut rows = statement.query([session.0])?;
        while let Some(row) = rows.next()? {
            open.push(open_run(row)?);
            names.push(RunNames {
                session_key: row.get(17)?,
                run_key: row.get(16)?,
            });
        }
        let report = LoadReport::Loaded {
            epoch: self.owner,
            generation,
            queue,
            open,
        };
        Ok(StoreDone::Loaded { report, names })
    }

    fn generation_and_queue(&self, session: SessionId) -> Step<(Generation, QueueOverride)> {
        let mut statement = self.sql.prepare_cached(
            "SELECT generation, queue_mode, queue_debounce_ms, queue_cap, queue_drop
             FROM sessions WHERE session = ?1",
        )?;
        let mut rows = statement.query([session.0])?;
        match rows.next()? {
            None => Ok((FIRST_GENERATION, QueueOverride::default())),
            Some(row) => Ok((
                Generation(codec::from_sql(row.get(0)?)),
                queue::override_from_row(row, 1)?,
            )),
        }
    }

    /// What is known of a run.
    pub(crate) fn lookup(&self, run: RunId) -> Step<StoreDone> {
        let mut statement = self.sql.prepare_cached(
            "SELECT i.run_key, s.session_key
             FROM inbox i JOIN sessions s ON s.session = i.session WHERE i.run = ?1",
        )?;
        let names = statement
            .query_row([run.0], |row| {
                Ok(RunNames {
                    run_key: row.get(0)?,
                    session_key: row.get(1)?,
                })
            })
            .optional()?;
        let (report, text) = match (self.receipt(run)?, &names) {
            (Some((terminal, text)), _) => (LookupReport::Ended(terminal), text),
            (None, Some(_)) => (LookupReport::Open, StoredText::default()),
            (None, None) => (LookupReport::Unknown, StoredText::default()),
        };
        Ok(StoreDone::LookedUp {
            report,
            names,
            text,
        })
    }
}

fn open_run(row: &Row<'_>) -> Step<OpenRun> {
    let budget: String = row.get(2)?;
    let (lane, priority): (String, String) = (row.get(13)?, row.get(14)?);
    Ok(OpenRun {
        run: RunId(row.get(0)?),
        body: Fingerprint(row.get(1)?),
        budget: codec::budget_from_sql(&budget, row.get(3)?)?,
        left_ms: left_ms(row)?,
        accepted_at: wall(row, 7)?,
        attempt: Attempt(row.get(8)?),
        turn: queue::turn_from_row(row, 9)?,
        lane: queue::lane_from_sql(&lane)?,
        priority: queue::priority_from_sql(&priority)?,
        along: row.get::<_, Option<[u8; 16]>>(15)?.map(RunId),
    })
}

/// What was left at the claim, less the time that the saves prove the run to have been at
/// work. Time that no save tells of is not charged: the process may have been down (B-082).
fn left_ms(row: &Row<'_>) -> Step<Option<u64>> {
    let left: Option<i64> = row.get(4)?;
    let claimed: Option<i64> = row.get(5)?;
    let saved: Option<i64> = row.get(6)?;
    let worked = match (claimed, saved) {
        (Some(claimed), Some(saved)) => saved.saturating_sub(claimed),
        _ => 0,
    };
    Ok(left.map(|left| codec::from_sql(left).saturating_sub(codec::from_sql(worked))))
}
