//! Finds the program under test.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The built program: what `TIDEGATE_BIN` names, else the newer of the release and the debug
/// build of this workspace.
///
/// # Panics
/// If there is none, with what to do.
#[must_use]
pub fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("TIDEGATE_BIN") {
        let named = PathBuf::from(named);
        assert!(
            named.is_file(),
            "TIDEGATE_BIN names {}, which is not a file: set it to a built tidegate, or unset it",
            named.display()
        );
        return named;
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    let built = |profile: &str| {
        let path = target.join(profile).join("tidegate");
        let at: SystemTime = path.metadata().ok()?.modified().ok()?;
        Some((at, path))
    };
    built("release")
        .max(built("debug"))
        .map(|(_, path)| path)
        .unwrap_or_else(|| {
            panic!(
                "no tidegate in {}: build it with `cargo build --release -p tidegate`, \
                 or name one with TIDEGATE_BIN",
                target.display()
            )
        })
}
