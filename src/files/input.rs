//! Reading a file whole, whatever it is.

use std::fs::{File, FileType};
use std::io::{ErrorKind, Read};
use std::path::Path;

use super::{FileError, note_input};

/// What a file holds, and so how large it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// An instance, a cluster, a network, what was launched: a few kB.
    Settings,
    /// An answer in JSON: a hundred layouts of a long pipeline have a few MB.
    Answer,
    /// Measured runs, some 200 bytes each.
    Runs,
    /// Rows of a batch that goes on: the only input that is also written.
    Results,
    /// What a training run printed.
    Log,
}

impl Content {
    /// Largest size, in MiB.
    const fn most_mib(self) -> u64 {
        match self {
            Self::Settings => 1,
            Self::Answer => 32,
            Self::Runs | Self::Results => 256,
            Self::Log => 1024,
        }
    }

    const fn usual_size(self) -> &'static str {
        match self {
            Self::Settings => "a few kB",
            Self::Answer | Self::Runs | Self::Results => "a few MB",
            Self::Log => "some MB",
        }
    }
}

/// The bytes of a file.
///
/// # Errors
///
/// If there is no such file, it is a folder, a device or a pipe (but for the process's own, such as
/// `/dev/stdin`), or it is larger than its content may be.
pub fn read(path: &Path, content: Content) -> Result<Vec<u8>, FileError> {
    let failed = |reason: &str, hint: &str| FileError {
        deed: "read",
        path: path.to_owned(),
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    };
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => failed("there is no such file", "check the path"),
        ErrorKind::PermissionDenied => failed("permission denied", "make the file readable"),
        _ => failed(&error.to_string().to_lowercase(), "check the path"),
    })?;
    if metadata.is_dir() {
        return Err(failed("it is a folder", "name a file in it"));
    }
    if !metadata.is_file() && !is_own_pipe(path, metadata.file_type()) {
        return Err(failed("it is a device or a pipe", "name a regular file"));
    }
    let most = content.most_mib() << 20;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|error| failed(&error.to_string().to_lowercase(), "make the file readable"))?;
    if bytes.len() as u64 > most {
        let reason = format!("it is larger than {} MiB", content.most_mib());
        let usual = content.usual_size();
        let hint = format!("such a file has {usual}: is it the right one?");
        return Err(failed(&reason, &hint));
    }
    if content != Content::Results {
        note_input(path);
    }
    Ok(bytes)
}

/// The text of a file.
///
/// # Errors
///
/// As [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path, content: Content) -> Result<String, FileError> {
    String::from_utf8(read(path, content)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|&byte| byte == b'\n').count();
        FileError {
            deed: "read",
            path: path.to_owned(),
            reason: format!("it is not UTF-8 text (line {line})"),
            hint: "save the file as UTF-8".to_owned(),
        }
    })
}

/// Whether it is the reading end of a pipe that the shell has given to the process.
#[cfg(unix)]
fn is_own_pipe(path: &Path, kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let own = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];
    kind.is_fifo() && own.iter().any(|own| path.starts_with(own))
}

#[cfg(not(unix))]
fn is_own_pipe(_: &Path, _: FileType) -> bool {
    false
}
