//! Requests that were not answered yet and whose answer may name runs of their session: the
//! session's outside name, and the names of the runs that the core forgot meanwhile.
//!
//! An entry goes with the first answer, whether or not anybody listens any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{RequestId, RunId, SessionId};

#[derive(Debug)]
struct Session {
    session_key: Arc<str>,
    /// By request: the runs that ended since it came.
    ended: BTreeMap<RequestId, BTreeMap<RunId, Arc<str>>>,
}

/// All such requests.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    sessions: BTreeMap<SessionId, Session>,
    by_request: BTreeMap<RequestId, SessionId>,
}

impl Asked {
    pub(crate) fn ask(&mut self, id: RequestId, session: SessionId, session_key: Arc<str>) {
        self.by_request.insert(id, session);
        let session = self.sessions.entry(session).or_insert_with(|| Session {
            session_key,
            ended: BTreeMap::new(),
        });
        session.ended.insert(id, BTreeMap::new());
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_request.len()
    }

    /// The name of a session that somebody asks about.
    pub(crate) fn session_key(&self, session: SessionId) -> Option<Arc<str>> {
        let session = self.sessions.get(&session)?;
        Some(session.session_key.clone())
    }

    /// The core forgets a run: whoever asks about its session may still hear its name.
    pub(crate) fn forgotten(&mut self, session: SessionId, run: RunId, run_key: &Arc<str>) {
        let session = self.sessions.get_mut(&session);
        for ended in session.into_iter().flat_map(|s| s.ended.values_mut()) {
            ended.insert(run, run_key.clone());
        }
    }

    /// The name of a run that ended since the request came.
    pub(crate) fn run_key(&self, id: RequestId, run: RunId) -> Option<Arc<str>> {
        let session = self.sessions.get(self.by_request.get(&id)?)?;
        session.ended.get(&id)?.get(&run).cloned()
    }

    pub(crate) fn answered(&mut self, id: RequestId) {
        let Some(key) = self.by_request.remove(&id) else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.ended.remove(&id);
            if session.ended.is_empty() {
                self.sessions.remove(&key);
            }
        }
    }
}
