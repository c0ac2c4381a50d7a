//! Reading a file as text, whatever it is.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Largest file that is read: instance files have a few kB.
const LARGEST: u64 = 1 << 20;

/// The text of a file, or what stands in the way and what to do about it.
pub(crate) fn read(path: &Path) -> Result<String, (String, String)> {
    let failed = |reason: &str, hint: &str| Err((reason.to_owned(), hint.to_owned()));
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => {
            return match error.kind() {
                ErrorKind::NotFound => failed("there is no such file", "check the path"),
                ErrorKind::PermissionDenied => {
                    failed("permission denied", "make the file readable")
                }
                _ => failed(&error.to_string().to_lowercase(), "check the path"),
            };
        }
    };
    if metadata.is_dir() {
        return failed("it is a folder", "name a file in it");
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return failed(&error.to_string().to_lowercase(), "make the file readable");
    }
    if bytes.len() as u64 > LARGEST {
        return failed(
            "it is larger than 1 MiB",
            "such a file has a few kB: is it the right one?",
        );
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].split(|&byte| byte == b'\n').count();
            Err((
                format!("it is not UTF-8 text (line {line})"),
                "save the file as UTF-8".to_owned(),
            ))
        }
    }
}
