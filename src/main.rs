//! The `parlayout` binary: parse, run, print the error, set the exit code.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => code,
        Err(error) => {
            let mut text = format!("error: {error}");
            for cause in error.chain().skip(1) {
                text.push_str("\n  because ");
                text.push_str(&cause.to_string());
            }
            cli::complain(&text);
            cli::BAD_INPUT.into()
        }
    }
}
