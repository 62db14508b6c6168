//! Saving what has streamed: pieces of a reply, under the writer's fence.

use rusqlite::params;
use tidegate_core::{Epoch, Fence, Wall};

use crate::codec;
use crate::fault::Step;
use crate::rows::Work;

impl Work<'_> {
    /// Appends a piece where the saved text ends, and says where it ends now. A piece that
    /// would leave a gap or repeat what is there is not kept; a fence that does not hold
    /// writes nothing.
    pub(crate) fn save(
        &self,
        fence: &Fence,
        epoch: Epoch,
        from: u64,
        text: &str,
        at: Wall,
    ) -> Step<Option<u64>> {
        if !self.owns(epoch) || !self.is_writer(fence)? {
            return Ok(None);
        }
        let mut kept = self.saved_bytes(fence)?;
        if !text.is_empty() && from == kept {
            kept += text.len() as u64;
            self.sql
                .prepare_cached(
                    "INSERT INTO partial (run, attempt, start, text) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    fence.run.0,
                    fence.attempt.0,
                    codec::to_sql(from),
                    text
                ])?;
        }
        // The run was at work until now, whether or not its text could be added.
        self.note_work(fence.run, at)?;
        Ok(Some(kept))
    }

    fn saved_bytes(&self, fence: &Fence) -> Step<u64> {
        let bytes: i64 = self
            .sql
            .prepare_cached(
                "SELECT coalesce(max(start + octet_length(text)), 0) FROM
                     (SELECT start, text FROM partial WHERE run = ?1 AND attempt = ?2
                      ORDER BY start DESC LIMIT 1)",
            )?
            .query_row(params![fence.run.0, fence.attempt.0], |row| row.get(0))?;
        Ok(codec::from_sql(bytes))
    }
}
