//! The first request of a socket: who may come in, and what it is told.
//!
//! Pure: from a frame's bytes to a welcome or a refusal. The order of the checks is the
//! protocol's: frame, method, parameters, version, role, secret (surface 1.4).

use serde_json::json;
use tidegate_wire::{
    BadFrame, CAP_KNOWN_RUN, CAP_SESSION_EVENTS, CAP_TOOL_EVENTS, ConnectParams, PROTOCOL, Request,
    Response, WireError, method,
};

use crate::outbox::close;
use crate::token::Token;

/// The oldest version that a probe may speak.
const PROBE_PROTOCOL: u64 = 3;

/// Who came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The id of its request, to be answered with hello.
    pub request_id: String,
    /// What it calls itself, for logs.
    pub client: String,
    /// The scopes that it asked for. It holds the token, so it gets them.
    pub scopes: Vec<String>,
    /// Whether it understands `known: false`.
    pub known_run: bool,
    /// It wants the events of runs only of sessions that it subscribed to.
    pub scoped: bool,
    /// It wants to hear what the tools of these runs do.
    pub tools: bool,
}

/// Why a socket is turned away.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    /// What it is answered.
    pub response: Response,
    /// The close code behind that.
    pub code: u16,
    /// The close reason.
    pub reason: String,
}

impl Refusal {
    fn new(id: &str, error: WireError, code: u16) -> Box<Self> {
        let reason = error.message.clone();
        Box::new(Self {
            response: Response::err(id, error),
            code,
            reason,
        })
    }
}

/// Judges the first frame.
///
/// # Errors
/// [`Refusal`] with the answer and the close.
pub(crate) fn judge(frame: &[u8], token: &Token) -> Result<Peer, Box<Refusal>> {
    let request = Request::read(frame).map_err(|BadFrame { id, error }| {
        let mut refusal = Refusal::new(&id, error, close::POLICY);
        refusal.reason = "invalid request frame".to_owned();
        refusal
    })?;
    let id = request.id;
    if request.method != method::CONNECT {
        let error = WireError::invalid("invalid handshake: first request must be connect");
        return Err(Refusal::new(&id, error, close::POLICY));
    }
    let connect = ConnectParams::read(request.params).map_err(|bad| {
        Refusal::new(
            &id,
            WireError::invalid(format!("invalid connect params: {bad}")),
            close::POLICY,
        )
    })?;
    check_version(&connect).map_err(|error| Refusal::new(&id, error, close::PROTOCOL))?;
    if connect.role != "operator" {
        let error = WireError::invalid("unauthorized role: this gateway serves role operator only");
        return Err(Refusal::new(&id, error, close::POLICY));
    }
    token
        .check(&connect.auth)
        .map_err(|problem| Refusal::new(&id, problem.error(), close::POLICY))?;
    Ok(Peer {
        request_id: id,
        client: format!("{}/{}", connect.client.id, connect.client.mode),
        known_run: connect.caps.iter().any(|cap| cap == CAP_KNOWN_RUN),
        scoped: connect.caps.iter().any(|cap| cap == CAP_SESSION_EVENTS),
        tools: connect.caps.iter().any(|cap| cap == CAP_TOOL_EVENTS),
        scopes: connect.scopes,
    })
}

fn check_version(connect: &ConnectParams) -> Result<(), WireError> {
    let oldest = if connect.client.mode == "probe" {
        PROBE_PROTOCOL
    } else {
        PROTOCOL
    };
    if connect.min_protocol <= PROTOCOL && connect.max_protocol >= oldest {
        return Ok(());
    }
    Err(WireError::invalid(format!(
        "protocol mismatch: this gateway speaks {PROTOCOL}, the client {} to {}",
        connect.min_protocol, connect.max_protocol
    ))
    .with(json!({
        "code": "PROTOCOL_MISMATCH",
        "clientMinProtocol": connect.min_protocol,
        "clientMaxProtocol": connect.max_protocol,
        "expectedProtocol": PROTOCOL,
        "minimumProbeProtocol": PROBE_PROTOCOL,
    })))
}

/// What a method asks for. Admin holds everything, write holds read; who may start runs may
/// not for that reason allow what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// To look.
    Read,
    /// To start and stop runs.
    Write,
    /// To decide on tool calls that wait for a person.
    Approvals,
}

impl Peer {
    /// Whether the peer holds a scope.
    pub fn holds(&self, scope: Scope) -> bool {
        self.scopes.iter().any(|held| match held.as_str() {
            "operator.admin" => true,
            "operator.write" => matches!(scope, Scope::Read | Scope::Write),
            "operator.read" => scope == Scope::Read,
            "operator.approvals" => scope == Scope::Approvals,
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn connect() -> Value {
        json!({"type": "req", "id": "1", "method": "connect", "params": {
            "minProtocol": 4, "maxProtocol": 4,
            "client": {"id": "cli", "version": "1", "platform": "linux", "mode": "cli"},
            "auth": {"token": "secret"}, "scopes": ["operator.read"]}})
    }

    fn judged(change: impl FnOnce(&mut Value)) -> Result<Peer, Box<Refusal>> {
        let mut frame = connect();
        change(&mut frame);
        judge(frame.to_string().as_bytes(), &Token::new("secret"))
    }

    /// surface 1.4: each refusal has its answer and its close code
    #[test]
    fn each_refusal_says_what_and_closes_as_the_protocol_says() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str, Option<&str>, u16); 8] = [
            (
                |f| f["method"] = json!("health"),
                "invalid handshake: first request must be connect",
                None,
                1008,
            ),
            (
                |f| f["type"] = json!("res"),
                "invalid request frame: at /type: must be equal to one of the allowed values: req",
                None,
                1008,
            ),
            (
                |f| f["params"]["client"]["id"] = json!("me"),
                "invalid connect params: at /client/id: must be equal to one of",
                None,
                1008,
            ),
            (
                |f| f["params"]["bogus"] = json!(1),
                "invalid connect params: at root: unexpected property 'bogus'",
                None,
                1008,
            ),
            (
                |f| f["params"]["minProtocol"] = json!(5),
                "protocol mismatch",
                Some("PROTOCOL_MISMATCH"),
                1002,
            ),
            (
                |f| f["params"]["role"] = json!("node"),
                "unauthorized role",
                None,
                1008,
            ),
            (
                |f| f["params"]["auth"] = json!({"token": "x"}),
                "unauthorized: gateway token mismatch",
                Some("AUTH_TOKEN_MISMATCH"),
                1008,
            ),
            (
                |f| f["params"]["auth"] = json!({}),
                "unauthorized: gateway token missing",
                Some("AUTH_TOKEN_MISSING"),
                1008,
            ),
        ];
        for (change, message, code, close) in cases {
            let refusal = judged(change).unwrap_err();
            let error = refusal.response.error.unwrap();
            assert!(error.message.starts_with(message), "{}", error.message);
            assert_eq!(error.details_code(), code, "{message}");
            assert_eq!(
                (refusal.code, refusal.response.id.as_str()),
                (close, "1"),
                "{message}"
            );
        }
    }

    /// surface 1.6: probes may speak 3, others may not
    #[test]
    fn a_probe_may_speak_an_older_version() {
        let old = |f: &mut Value| {
            (f["params"]["minProtocol"], f["params"]["maxProtocol"]) = (json!(3), json!(3))
        };
        assert!(judged(old).is_err());
        assert!(
            judged(|f| {
                old(f);
                f["params"]["client"]["mode"] = json!("probe");
            })
            .is_ok()
        );
    }

    /// surface 1.4, 3: admin satisfies all, write satisfies read, and neither of the others
    /// decides on approvals
    #[test]
    fn a_peer_holds_the_scopes_that_it_asked_for() {
        let holds = |scope: &str| {
            let peer = judged(|f| f["params"]["scopes"] = json!([scope])).unwrap();
            [Scope::Read, Scope::Write, Scope::Approvals].map(|scope| peer.holds(scope))
        };
        assert_eq!(holds("operator.admin"), [true, true, true]);
        assert_eq!(holds("operator.write"), [true, true, false]);
        assert_eq!(holds("operator.read"), [true, false, false]);
        assert_eq!(holds("operator.approvals"), [false, false, true]);
        assert_eq!(holds("operator.pairing"), [false, false, false]);
    }
}
