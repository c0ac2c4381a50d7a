//! Files: what is read has a largest size, what is written is whole, and nothing that was read is
//! written over.

mod input;
mod output;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use input::{Content, read, read_text};
pub use output::{may_write, write};

/// Why a file cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {deed} `{}`: {reason}\nhint: {hint}", path.display())]
pub struct FileError {
    /// `read` or `write`.
    deed: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What stands in the way.
    pub reason: String,
    /// What to do about it.
    pub hint: String,
}

/// What tells files apart, whatever they are called.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    std::fs::canonicalize(path).ok()
}

/// The files that this process reads.
static INPUTS: Mutex<Vec<Identity>> = Mutex::new(Vec::new());

/// Notes that a file is read, or is going to be, so that it is not written over.
pub fn note_input(path: &Path) {
    let Some(identity) = identity(path) else {
        return;
    };
    let mut inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    if !inputs.contains(&identity) {
        inputs.push(identity);
    }
}

fn is_input(path: &Path) -> bool {
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    identity(path).is_some_and(|identity| inputs.contains(&identity))
}

#[cfg(test)]
mod tests;
