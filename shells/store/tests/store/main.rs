//! The store against real files: every rule of its transactions, as an order and what came
//! of it.

mod accept;
mod claim;
mod crash;
mod history;
mod kit;
mod lists;
mod migrate;
mod model;
mod open;
mod queue;
mod reset;
mod save;
mod settle;
mod tools;
mod tools_schema;
