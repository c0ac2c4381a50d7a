//! Writing a file whole: beside its place, then moved there.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{FileError, is_input};

/// Whether a file may be written.
///
/// # Errors
///
/// If it is a folder, or one of the files that the process has read.
pub fn may_write(path: &Path) -> Result<(), FileError> {
    if path.is_dir() {
        return Err(failed(path, "it is a folder", "name a file in it"));
    }
    if is_input(path) {
        let reason = "this command reads it, and would overwrite what it read";
        return Err(failed(path, reason, "name another file"));
    }
    Ok(())
}

/// Writes a file. It has its former content or all of the new one, whatever happens meanwhile. What is
/// no regular file, such as `/dev/stdout`, is written as it is.
///
/// # Errors
///
/// As [`may_write`], and if the system refuses.
pub fn write(path: &Path, text: &str) -> Result<(), FileError> {
    may_write(path)?;
    let before = fs::metadata(path);
    let written = match &before {
        Ok(metadata) if !metadata.is_file() => fs::write(path, text),
        Ok(metadata) => {
            let place = fs::canonicalize(path);
            place.and_then(|place| replace(&place, text, Some(metadata.permissions())))
        }
        Err(_) => replace(path, text, None),
    };
    written.map_err(|error| {
        let reason = error.to_string().to_lowercase();
        failed(path, &reason, "check the folder and its permissions")
    })
}

fn replace(place: &Path, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
    let beside = beside(place);
    let written =
        write_beside(&beside, text, permissions).and_then(|()| fs::rename(&beside, place));
    if written.is_err() {
        // What failed is told; a file that cannot be removed either changes nothing.
        drop(fs::remove_file(&beside));
    }
    written
}

fn write_beside(beside: &Path, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(beside)?;
    file.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()
}

/// A path in the same folder that nobody else writes.
fn beside(place: &Path) -> PathBuf {
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let mut name = std::ffi::OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(format!(".{}-{number}.part", std::process::id()));
    place.with_file_name(name)
}

fn failed(path: &Path, reason: &str, hint: &str) -> FileError {
    FileError {
        deed: "write",
        path: path.to_owned(),
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    }
}
