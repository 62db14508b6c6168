//! Tool calls and their results: what is open, what closes it, and how both are read.
//!
//! Owns the one function that gives a call its result, whoever orders it (P08, I24). It never
//! starts a call, and never gives a call a second result: what may have run and is not known
//! is written as not known (law 12).

use rusqlite::{Row, params};
use tidegate_core::{CallEnd, CallResult, RunId, Wall};
use tidegate_driver::{CallText, ToolAnswer};

use crate::codec;
use crate::fault::{Fault, Step};
use crate::rows::Work;

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallState {
    /// The model asked for it.
    Requested,
    /// It waits for a person.
    Asked,
    /// It may have started.
    Launched,
    /// It has a result.
    Ended,
}

impl CallState {
    /// The name of a state.
    pub(crate) const fn to_sql(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Asked => "asked",
            Self::Launched => "launched",
            Self::Ended => "ended",
        }
    }

    /// Reads what [`CallState::to_sql`] wrote.
    pub(crate) fn from_sql(state: &str) -> Step<Self> {
        match state {
            "requested" => Ok(Self::Requested),
            "asked" => Ok(Self::Asked),
            "launched" => Ok(Self::Launched),
            "ended" => Ok(Self::Ended),
            _ => Err(Fault::Record {
                what: "call state",
                expected: "requested, asked, launched or ended",
            }),
        }
    }

    /// How a call ends of which nothing more will be heard.
    const fn left_as(self) -> CallEnd {
        match self {
            Self::Requested => CallEnd::Skipped,
            Self::Asked => CallEnd::Stale,
            Self::Launched | Self::Ended => CallEnd::Unknown,
        }
    }
}

/// A call without a result, with the columns that find it.
struct OpenCall {
    session: [u8; 16],
    generation: i64,
    asks: i64,
    call: u16,
    state: CallState,
}

impl Work<'_> {
    /// Gives each open call of a run its result, as a row directly behind the row that asks.
    /// Those that `results` names end as it says, with their output; the others were left by
    /// an earlier life or by a writer that lost its session, and end by how far they came: a
    /// launched call as unknown, an asked one as stale, a requested one as skipped.
    pub(crate) fn close_calls(
        &self,
        run: RunId,
        at: Wall,
        results: &[CallResult],
        outputs: &[String],
    ) -> Step<()> {
        if results.len() != outputs.len() {
            return Err(Fault::Order("each result of a call needs one output"));
        }
        let mut named = results.iter().zip(outputs).peekable();
        for open in self.open_calls(run)? {
            let result = named.next_if(|(result, _)| result.call == open.call);
            let (end, output) = match result {
                Some((result, output)) => (result.end, output.as_str()),
                None => (open.state.left_as(), ""),
            };
            // I34: what starts is launched first; the other way round it is a lie.
            if end.was_started() && open.state != CallState::Launched {
                return Err(Fault::Order("a call can't have run that was not launched"));
            }
            self.end_call(run, &open, end, output, at)?;
        }
        match named.next() {
            None => Ok(()),
            Some(_) => Err(Fault::Order(
                "a result names a call that is not open, or not in the order of the calls",
            )),
        }
    }

    fn open_calls(&self, run: RunId) -> Step<Vec<OpenCall>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT session, generation, seq, call, state FROM calls
             WHERE run = ?1 AND state <> 'ended' ORDER BY call",
        )?;
        let mut rows = statement.query([run.0])?;
        let mut open = Vec::new();
        while let Some(row) = rows.next()? {
            let state: String = row.get(4)?;
            open.push(OpenCall {
                session: row.get(0)?,
                generation: row.get(1)?,
                asks: row.get(2)?,
                call: row.get(3)?,
                state: CallState::from_sql(&state)?,
            });
        }
        Ok(open)
    }

    /// The result's row first: the state of a call with a result is checked against it.
    fn end_call(
        &self,
        run: RunId,
        open: &OpenCall,
        end: CallEnd,
        output: &str,
        at: Wall,
    ) -> Step<()> {
        self.sql
            .prepare_cached(
                "INSERT INTO transcript (session, generation, seq, role, mark, run, turn, at, text,
                                         asks, call)
                 VALUES (?1, ?2, ?3 + 1 + ?4, 'tool', 'whole', ?5, ?5, ?6, ?7, ?3, ?4)",
            )?
            .execute(params![
                open.session,
                open.generation,
                open.asks,
                open.call,
                run.0,
                codec::to_sql(at.0),
                output,
            ])?;
        self.sql
            .prepare_cached(
                "UPDATE calls SET state = 'ended', ended_as = ?5
                 WHERE session = ?1 AND generation = ?2 AND seq = ?3 AND call = ?4",
            )?
            .execute(params![
                open.session,
                open.generation,
                open.asks,
                open.call,
                end_to_sql(end),
            ])?;
        Ok(())
    }

    /// The calls that a row of a transcript asks for, in their order.
    pub(crate) fn calls_of(
        &self,
        session: [u8; 16],
        generation: i64,
        seq: i64,
    ) -> Step<Vec<CallText>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT id, name, arguments FROM calls
             WHERE session = ?1 AND generation = ?2 AND seq = ?3 ORDER BY call",
        )?;
        let rows = statement.query_map(params![session, generation, seq], |row| {
            Ok(CallText {
                id: row.get(0)?,
                name: row.get(1)?,
                arguments: row.get(2)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Which call a row answers, from three columns that begin at `first`: id, name, end. `None`
/// if the row is no tool's.
pub(crate) fn answer_from_row(row: &Row<'_>, first: usize) -> Step<Option<ToolAnswer>> {
    let Some(id) = row.get(first)? else {
        return Ok(None);
    };
    let end: Option<String> = row.get(first + 2)?;
    Ok(Some(ToolAnswer {
        id,
        name: row.get(first + 1)?,
        end: end_from_sql(end.as_deref().unwrap_or_default())?,
    }))
}

/// The name of an end in the table of calls.
const fn end_to_sql(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Ok => "ok",
        CallEnd::Failed => "failed",
        CallEnd::TimedOut => "timed_out",
        CallEnd::Cancelled => "cancelled",
        CallEnd::Unknown => "unknown",
        CallEnd::Skipped => "skipped",
        CallEnd::NoSuchTool => "no_such_tool",
        CallEnd::BadArguments => "bad_arguments",
        CallEnd::Denied => "denied",
        CallEnd::Expired => "expired",
        CallEnd::Stale => "stale",
    }
}

/// Reads what [`end_to_sql`] wrote.
fn end_from_sql(end: &str) -> Step<CallEnd> {
    [
        CallEnd::Ok,
        CallEnd::Failed,
        CallEnd::TimedOut,
        CallEnd::Cancelled,
        CallEnd::Unknown,
        CallEnd::Skipped,
        CallEnd::NoSuchTool,
        CallEnd::BadArguments,
        CallEnd::Denied,
        CallEnd::Expired,
        CallEnd::Stale,
    ]
    .into_iter()
    .find(|known| end_to_sql(*known) == end)
    .ok_or(Fault::Record {
        what: "end of a call",
        expected: "an end that this build knows",
    })
}
