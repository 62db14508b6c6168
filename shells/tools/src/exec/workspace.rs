//! The workspace: the directory that commands start in.
//!
//! Owns its making and the way from a named directory to one that a command may start in. It
//! is where work begins, not a wall: a command goes wherever its user may.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Why there is no workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Neither there nor to be made.
    #[error(
        "the workspace {} can't be made: {source}; choose a directory that this user may write \
         (agents.defaults.workspace)",
        path.display()
    )]
    Make {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The path leads to something else.
    #[error(
        "the workspace {} is not a directory: choose a directory, or a path where one can be \
         made (agents.defaults.workspace)",
        path.display()
    )]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
}

/// A directory, by its true path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Workspace(PathBuf);

impl Workspace {
    /// The workspace at `path`. What is missing of it is made for its owner alone; what is
    /// there stays as it is.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub(crate) fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let failed = |source| WorkspaceError::Make {
            path: path.into(),
            source,
        };
        if path.exists() && !path.is_dir() {
            return Err(WorkspaceError::NotADirectory { path: path.into() });
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(failed)?;
        path.canonicalize().map(Self).map_err(failed)
    }

    /// Its true path.
    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    /// The true path of `below`, if it is a directory inside. The error is a sentence.
    pub(crate) fn enter(&self, below: &Path) -> Result<PathBuf, String> {
        let named = self.0.join(below);
        let shown = named.display();
        let path = named
            .canonicalize()
            .map_err(|error| format!("The working directory {shown} can't be entered: {error}."))?;
        if !path.starts_with(&self.0) {
            return Err(format!(
                "The working directory {shown} leads outside the workspace, to {}.",
                path.display()
            ));
        }
        if !path.is_dir() {
            return Err(format!("The working directory {shown} is not a directory."));
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_workspace_is_made_for_its_owner_alone_and_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/workspace");
        let made = Workspace::open(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(Workspace::open(&path).unwrap(), made);
        assert_eq!(mode(&path), 0o750);
    }

    #[test]
    fn what_is_no_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "").unwrap();
        let error = Workspace::open(&path).unwrap_err();
        assert!(matches!(error, WorkspaceError::NotADirectory { .. }));
        let error = Workspace::open(&path.join("below")).unwrap_err();
        assert!(matches!(error, WorkspaceError::Make { .. }));
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    }

    #[test]
    fn a_link_that_leads_outside_is_refused_and_one_inside_followed() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(&dir.path().join("workspace")).unwrap();
        let root = workspace.root();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("inside")).unwrap();
        symlink(dir.path(), root.join("outside")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        assert_eq!(workspace.enter(Path::new("")), Ok(root.into()));
        assert_eq!(workspace.enter(Path::new("inside")), Ok(root.join("real")));
        for (below, words) in [
            ("outside", "outside the workspace"),
            ("file", "not a directory"),
            ("missing", "can't be entered"),
        ] {
            let refused = workspace.enter(Path::new(below)).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
