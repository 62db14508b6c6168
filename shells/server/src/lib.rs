//! The gateway's network side: WebSocket on `/` and HTTP probes, on one port, over any
//! listener.
//!
//! It turns frames into calls of a [`tidegate_driver::Client`] and its answers and events
//! into frames. It decides nothing about runs: the only limits here are of IO, and all of
//! them are named in [`limits`]. Who presents the gateway's token is its operator and holds
//! the scopes that it asks for; there is no other identity.

mod approvals;
mod changes;
mod chat;
mod commands;
mod connection;
mod control;
mod cursor;
mod events;
mod gate;
mod handshake;
mod history;
mod http;
mod keys;
pub mod limits;
mod log;
mod methods;
mod net;
mod outbox;
mod project;
mod queries;
mod refusals;
mod rounds;
mod rows;
mod seats;
mod sentences;
mod server;
mod subscribe;
mod tasks;
mod token;
mod tools;
mod words;

pub use net::TcpPort;
pub use server::{Server, ServerConfig};
pub use token::Token;
