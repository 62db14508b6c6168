//! The chat-completions dialect: one call to an OpenAI-compatible provider.
//!
//! Owns what is asked, and of whom; how the answer is read is told in `answer.rs`. It keeps no
//! clock and tries nothing twice (law 1): each event is reported as its bytes come, and the
//! future that `OpenAiChat::call` gave is the call; dropping it closes the connection.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_core::{ModelEnd, ProviderClass};
use tidegate_driver::{ModelCall, ModelSink, ToolSpec};
use tidegate_text::provider_class;

use crate::messages::{Message, messages};
use crate::secret::Secret;
use crate::transport::{HttpRequest, Transport, TransportError};

/// Why a provider can't be used as it was configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProvider {
    /// The address is no HTTP URL. Holds the reason and not the address: it may hold a key.
    #[error(
        "the provider's URL is no http:// or https:// address ({0}); expected something like https://api.example.com/v1"
    )]
    Url(String),
    /// The address holds a user name or password.
    #[error(
        "the provider's URL holds a user name or password; put the key into TIDEGATE_PROVIDER_KEY"
    )]
    UserInUrl,
    /// The address is not the path that all endpoints share.
    #[error(
        "the provider's URL must end before /chat/completions and have no ? or #, for example https://api.example.com/v1"
    )]
    Endpoint,
    /// No model is named.
    #[error("no model is named for the provider; give its name with --model")]
    NoModel,
    /// The key fits no header.
    #[error(
        "the provider's key holds a character that can't be sent in a header; copy it into TIDEGATE_PROVIDER_KEY again"
    )]
    Key,
}

/// An OpenAI-compatible provider and one of its models.
#[derive(Clone, Debug)]
pub struct OpenAiChat(Arc<Provider>);

pub(crate) struct Provider {
    endpoint: String,
    /// Host and port, for people.
    pub(crate) place: String,
    class: ProviderClass,
    model: String,
    pub(crate) key: Option<Secret>,
    transport: Box<dyn Transport>,
}

impl core::fmt::Debug for Provider {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Provider")
            .field("place", &self.place)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl OpenAiChat {
    /// A provider at `base_url` (up to and with `/v1`), asked for `model` over `transport`.
    ///
    /// # Errors
    /// [`BadProvider`], before anything is sent.
    pub fn new(
        base_url: &str,
        model: &str,
        key: Option<Secret>,
        transport: impl Transport,
    ) -> Result<Self, BadProvider> {
        let (url, model) = (base_url.trim(), model.trim());
        let parsed = parse(url)?;
        if model.is_empty() {
            return Err(BadProvider::NoModel);
        }
        if key
            .as_ref()
            .is_some_and(|key| !key.expose().bytes().all(|b| b.is_ascii_graphic()))
        {
            return Err(BadProvider::Key);
        }
        Ok(Self(Arc::new(Provider {
            endpoint: format!("{}/chat/completions", url.trim_end_matches('/')),
            place: place(&parsed),
            class: provider_class(parsed.as_str(), model),
            model: model.to_owned(),
            key,
            transport: Box::new(transport),
        })))
    }

    /// The provider's class, from which the core takes its limits (spec 5.1).
    #[must_use]
    pub fn class(&self) -> ProviderClass {
        self.0.class
    }

    /// Makes one call, whichever candidate it names, and reports to `sink`. Dropping the future
    /// closes the connection.
    pub(crate) fn call(&self, call: ModelCall, sink: ModelSink) -> BoxFuture<'static, ModelEnd> {
        let provider = Arc::clone(&self.0);
        async move { provider.call(&call, &sink).await }.boxed()
    }
}

/// A base URL that a key may be sent to.
fn parse(url: &str) -> Result<reqwest::Url, BadProvider> {
    let parsed = reqwest::Url::parse(url).map_err(|why| BadProvider::Url(why.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(BadProvider::Url(format!(
            "its scheme is {}",
            parsed.scheme()
        )));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(BadProvider::UserInUrl);
    }
    let too_far = parsed
        .path()
        .trim_end_matches('/')
        .ends_with("/completions");
    if too_far || parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(BadProvider::Endpoint);
    }
    Ok(parsed)
}

fn place(url: &reqwest::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: Vec<Message>,
    stream: bool,
    stream_options: StreamOptions,
    /// Left out where there are none: some models refuse an empty list. Which tool is called is
    /// the model's choice, as it is without a `tool_choice`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

/// A tool that the model may ask for.
#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Map<String, Value>,
}

impl<'a> Tool<'a> {
    /// `None` for a tool whose parameters are no JSON object: to offer it would cost the request.
    fn new(spec: &'a ToolSpec) -> Option<Self> {
        let Ok(parameters) = serde_json::from_str(&spec.parameters) else {
            tracing::error!(
                tool = spec.name,
                "the tool is not offered: its parameters are no JSON object; this is a defect"
            );
            return None;
        };
        Some(Self {
            r#type: "function",
            function: Function {
                name: &spec.name,
                description: &spec.description,
                parameters,
            },
        })
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// What an answer of a good status claims to be.
#[derive(Clone, Copy)]
enum Kind {
    Stream,
    Document,
    Other,
}

/// Many small servers name no type for their stream; none leaves it out of a page.
fn kind(content_type: Option<&str>) -> Kind {
    let Some(content_type) = content_type else {
        return Kind::Stream;
    };
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "" | "text/event-stream" => Kind::Stream,
        "application/json" => Kind::Document,
        other if other.ends_with("+json") => Kind::Document,
        _ => Kind::Other,
    }
}

impl Provider {
    async fn call(&self, call: &ModelCall, sink: &ModelSink) -> ModelEnd {
        let tools: Vec<Tool<'_>> = call.tools.iter().filter_map(Tool::new).collect();
        let request = ChatRequest {
            model: &self.model,
            messages: messages(&call.transcript, !tools.is_empty()),
            stream: true,
            stream_options: StreamOptions {
                include_usage: true,
            },
            tools,
        };
        let body = serde_json::to_vec(&request).expect("text, booleans and JSON are always JSON");
        let request = HttpRequest {
            url: self.endpoint.clone(),
            bearer: self.key.clone(),
            body: Bytes::from(body),
        };
        let answer = match self.transport.post(request).await {
            Ok(answer) => answer,
            Err(error) => {
                return sink
                    .fail(None, error.marker(), self.no_answer(&error))
                    .await;
            }
        };
        match (answer.status, kind(answer.content_type.as_deref())) {
            (200..=299, Kind::Stream) => self.read_stream(answer, sink).await,
            (200..=299, Kind::Document) => self.read_document(answer, sink).await,
            (200..=299, Kind::Other) => self.read_other(answer, sink).await,
            _ => self.read_failure(answer, sink).await,
        }
    }

    fn no_answer(&self, error: &TransportError) -> String {
        let place = &self.place;
        match error {
            TransportError::Refused => format!(
                "Nothing listens at {place} (connection refused). Check that the model server runs, and the provider's URL."
            ),
            TransportError::Unresolved => format!(
                "The name of {place} can't be resolved. Check the provider's URL and the network's name service."
            ),
            TransportError::Unreachable(why) => format!(
                "No connection to {place}: {why}. Check the network, a proxy that the environment names, and the provider's URL."
            ),
            TransportError::Tls(why) => format!(
                "TLS with {place} failed: {why}. Check the certificate, the system's CA certificates, and whether the provider's URL should begin with http://."
            ),
            TransportError::Broken(why) => {
                format!("The connection to {place} broke before the answer began: {why}.")
            }
        }
    }

    pub(crate) fn secret(&self) -> Option<&str> {
        self.key.as_ref().map(Secret::expose)
    }
}
