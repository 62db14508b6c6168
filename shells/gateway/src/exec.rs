//! Which tools the models may ask for: none, or the commands of the operator's choice.

use std::sync::Arc;

use tidegate_driver::{NoTools, Tools};
use tidegate_store::StateDir;
use tidegate_tools::{Bounds, BuiltIn, Environment, Exec};

use crate::config::{ExecSettings, Settings};
use crate::problem::Problem;

/// Where commands run in a state directory, unless the configuration names another place.
const WORKSPACE: &str = "workspace";

/// The tools, and what the start says about them.
pub struct Offered {
    /// Carries calls out.
    pub tools: Arc<dyn Tools>,
    /// What the models may run.
    pub words: String,
}

impl Offered {
    /// The tools that the settings name. With `exec`, its workspace is made.
    ///
    /// # Errors
    /// If the workspace cannot be used.
    pub fn choose(settings: &Settings, dir: &StateDir) -> Result<Self, Problem> {
        let Some(exec) = &settings.exec else {
            return Ok(Self {
                tools: Arc::new(NoTools),
                words: "none; to let the model run commands: tools.exec.security".into(),
            });
        };
        let workspace = exec.workspace.clone();
        let workspace = workspace.unwrap_or_else(|| dir.path().join(WORKSPACE));
        let opened = Exec::open(tidegate_tools::ExecSettings {
            workspace: workspace.clone(),
            timeout_sec: exec.timeout_sec,
            environment: Environment::of(std::env::vars_os()),
            bounds: Bounds::default(),
        });
        let opened = opened.map_err(|error| Problem::configuration(error.to_string()))?;
        Ok(Self {
            tools: Arc::new(BuiltIn::new(Some(opened))),
            words: format!("exec in {}; {}", workspace.display(), asking(exec)),
        })
    }
}

const fn asking(exec: &ExecSettings) -> &'static str {
    if exec.asks {
        "each command waits until you allow it (tidegate approvals)"
    } else {
        "commands run without asking"
    }
}
