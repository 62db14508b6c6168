//! The three kinds of frame: a request, its responses, and events.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::WireError;
use crate::fields::{Fields, Kind};
use crate::hello::StateVersion;

/// The id under which a frame without a usable id of its own is answered.
pub const INVALID_ID: &str = "invalid";

/// A request of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Chosen by the client; the responses carry it.
    pub id: String,
    /// The method's name.
    pub method: String,
    /// Its parameters.
    pub params: Option<Value>,
}

/// A frame that is not a request: the answer that it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct BadFrame {
    /// The frame's own id, or [`INVALID_ID`].
    pub id: String,
    /// What is wrong with it.
    pub error: WireError,
}

impl Request {
    /// Reads a request from the text of a frame. The frame is a closed object.
    ///
    /// # Errors
    /// [`BadFrame`] for anything else, JSON or not.
    pub fn read(text: &[u8]) -> Result<Self, BadFrame> {
        let bad = |id: &str, why: &str| BadFrame {
            id: id.to_owned(),
            error: WireError::invalid(format!("invalid request frame: {why}")),
        };
        let value: Value = serde_json::from_slice(text)
            .map_err(|e| bad(INVALID_ID, &format!("must be one JSON object: {e}")))?;
        let id = match value.get("id") {
            Some(Value::String(id)) if !id.is_empty() => id.clone(),
            _ => INVALID_ID.to_owned(),
        };
        Self::closed(value).map_err(|e| bad(&id, &e.0))
    }

    fn closed(value: Value) -> Result<Self, crate::BadParams> {
        let mut fields = Fields::of(Some(value))?;
        let kind = fields.need("type", Kind::OneOf(&["req"]));
        let request = Self {
            id: fields.need("id", Kind::Name)?,
            method: fields.need("method", Kind::Name)?,
            params: fields.take("params", Kind::Any)?,
        };
        kind?;
        fields.ignore(&[
            ("traceparent", Kind::Short(128)),
            ("expectedProfileId", Kind::Short(128)),
        ])?;
        fields.end()?;
        Ok(request)
    }

    /// The text of the frame.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut frame = json!({"type": "req", "id": self.id, "method": self.method});
        if let Some(params) = &self.params {
            frame["params"] = params.clone();
        }
        frame.to_string()
    }
}

/// An answer to a request. A request of method `agent` gets two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The request's id.
    pub id: String,
    /// Whether it went well.
    pub ok: bool,
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub payload: Option<Value>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<WireError>,
}

impl Response {
    /// A result.
    #[must_use]
    pub fn ok(id: impl Into<String>, payload: Value) -> Self {
        Self {
            id: id.into(),
            ok: true,
            payload: Some(payload),
            error: None,
        }
    }

    /// A refusal or failure.
    #[must_use]
    pub fn err(id: impl Into<String>, error: WireError) -> Self {
        Self {
            id: id.into(),
            ok: false,
            payload: None,
            error: Some(error),
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its name; see [`event_name`](crate::event_name).
    pub event: String,
    /// Its content.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub payload: Option<Value>,
    /// Its number on this connection: from 1; a gap is a loss. The challenge has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seq: Option<u64>,
    /// Versions of the shared state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub state_version: Option<StateVersion>,
}

/// A frame of the server, as a client reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ServerFrame {
    /// An answer.
    #[serde(rename = "res")]
    Response(Response),
    /// An event.
    #[serde(rename = "event")]
    Event(Event),
}

impl ServerFrame {
    /// Reads a frame of the server.
    ///
    /// # Errors
    /// The text is not such a frame.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text of the frame.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("frames have string keys and finite numbers only")
    }
}

/// The text of an event whose payload is written already: one payload serves all
/// connections, each of which puts its own number to it.
#[must_use]
pub fn event_text(event: &str, payload: &str, seq: u64) -> String {
    let name = Value::from(event);
    format!(r#"{{"type":"event","event":{name},"payload":{payload},"seq":{seq}}}"#)
}
