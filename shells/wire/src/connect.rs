//! What a client says in its first request.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fields::{BadParams, Fields, Kind};

/// The version of the protocol.
pub const PROTOCOL: u64 = 4;

/// Who may connect, by name.
pub const CLIENT_IDS: &[&str] = &[
    "webchat-ui",
    "openclaw-control-ui",
    "openclaw-browser-copilot",
    "openclaw-tui",
    "webchat",
    "cli",
    "gateway-client",
    "openclaw-macos",
    "openclaw-linux",
    "openclaw-ios",
    "openclaw-watchos",
    "openclaw-android",
    "node-host",
    "openclaw-worker",
    "test",
    "fingerprint",
    "openclaw-probe",
];

/// As what a client may connect.
pub const CLIENT_MODES: &[&str] = &[
    "webchat", "cli", "ui", "backend", "node", "worker", "probe", "test",
];

/// Text that no log and no error may show.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, to be compared or sent.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The program that connects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// One of [`CLIENT_IDS`].
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its operating system.
    pub platform: String,
    /// One of [`CLIENT_MODES`].
    pub mode: String,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Which of several equal programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
}

/// What a client may prove itself with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// The gateway's token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// The same, where a client has only a field for a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
}

/// A device's identity. Accepted and not used: the token alone decides on loopback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Its fingerprint.
    pub id: String,
}

/// The parameters of `connect`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectParams {
    /// The oldest version that the client speaks.
    pub min_protocol: u64,
    /// The newest version that the client speaks.
    pub max_protocol: u64,
    /// The client.
    pub client: ClientInfo,
    /// What it can take; see [`CAP_KNOWN_RUN`](crate::CAP_KNOWN_RUN).
    pub caps: Vec<String>,
    /// `operator` or `node`.
    pub role: String,
    /// The scopes that it asks for.
    pub scopes: Vec<String>,
    /// Its proof.
    pub auth: Auth,
    /// Its device, if it named one.
    #[serde(skip)]
    pub device: Option<Device>,
}

impl ConnectParams {
    /// Parameters of an operator's client that speaks our version.
    #[must_use]
    pub fn operator(client: ClientInfo, token: Secret, scopes: &[&str]) -> Self {
        Self {
            min_protocol: PROTOCOL,
            max_protocol: PROTOCOL,
            client,
            caps: vec![crate::CAP_KNOWN_RUN.to_owned()],
            role: "operator".to_owned(),
            scopes: scopes.iter().map(|s| (*s).to_owned()).collect(),
            auth: Auth {
                token: Some(token),
                password: None,
            },
            device: None,
        }
    }

    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let min = fields.whole("minProtocol", 1)?;
        let max = fields.whole("maxProtocol", 1)?;
        let client = fields.object("client")?;
        let connect = Self {
            min_protocol: min.ok_or_else(|| fields.missing("minProtocol"))?,
            max_protocol: max.ok_or_else(|| fields.missing("maxProtocol"))?,
            client: read_client(client.ok_or_else(|| fields.missing("client"))?)?,
            caps: fields.names("caps")?,
            role: fields
                .text("role", Kind::Name)?
                .unwrap_or_else(|| "operator".to_owned()),
            scopes: fields.names("scopes")?,
            auth: fields
                .object("auth")?
                .map(read_auth)
                .transpose()?
                .unwrap_or_default(),
            device: fields.object("device")?.map(read_device).transpose()?,
        };
        fields.names("commands")?;
        fields.ignore(&[
            ("permissions", Kind::Object),
            ("pathEnv", Kind::Text),
            ("computerUse", Kind::Any),
            ("workerRuns", Kind::Object),
            ("modelCatalog", Kind::Object),
            ("locale", Kind::Text),
            ("userAgent", Kind::Text),
        ])?;
        fields.end()?;
        Ok(connect)
    }
}

fn read_client(mut fields: Fields) -> Result<ClientInfo, BadParams> {
    let client = ClientInfo {
        id: fields.need("id", Kind::OneOf(CLIENT_IDS))?,
        version: fields.need("version", Kind::Name)?,
        platform: fields.need("platform", Kind::Name)?,
        mode: fields.need("mode", Kind::OneOf(CLIENT_MODES))?,
        display_name: fields.text("displayName", Kind::Name)?,
        instance_id: fields.text("instanceId", Kind::Name)?,
    };
    fields.ignore(&[
        ("buildId", Kind::Short(96)),
        ("deviceFamily", Kind::Name),
        ("modelIdentifier", Kind::Name),
        ("timeZone", Kind::Short(64)),
    ])?;
    fields.end()?;
    Ok(client)
}

fn read_auth(mut fields: Fields) -> Result<Auth, BadParams> {
    let auth = Auth {
        token: fields.text("token", Kind::Text)?.map(Secret::new),
        password: fields.text("password", Kind::Text)?.map(Secret::new),
    };
    fields.ignore(&[
        ("deviceToken", Kind::Text),
        ("bootstrapToken", Kind::Text),
        ("approvalRuntimeToken", Kind::Text),
        ("agentRuntimeIdentityToken", Kind::Text),
    ])?;
    fields.end()?;
    Ok(auth)
}

fn read_device(mut fields: Fields) -> Result<Device, BadParams> {
    let device = Device {
        id: fields.need("id", Kind::Name)?,
    };
    for name in ["publicKey", "signature", "nonce"] {
        fields.need(name, Kind::Name)?;
    }
    if fields.whole("signedAt", 0)?.is_none() {
        return Err(fields.missing("signedAt"));
    }
    fields.end()?;
    Ok(device)
}
