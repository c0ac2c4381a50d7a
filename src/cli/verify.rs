//! `parlayout verify`.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use parlayout::report::{Colour, json, verdict};
use parlayout::verify::{self, Verdict};

use super::{Format, REJECTED, SOLVED, print, style};

/// Largest certificate that is read; those of spaces with 60,000 combinations have a few MB.
const LARGEST: u64 = 256 << 20;

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The certificate, as `parlayout solve --certificate` writes it.
    certificate: PathBuf,
    /// Format of the verdict.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &VerifyArguments, colour: Colour) -> Result<u8> {
    let path = arguments.certificate.display();
    let text = read(arguments).with_context(|| format!("cannot read `{path}`"))?;
    let verdict = verify::verify(&text).with_context(|| format!("cannot read `{path}`"))?;
    let text = match arguments.format {
        Format::Table => verdict::verdict(&verdict, &style(colour, String::new())),
        Format::Json => json::verdict(&verdict),
    };
    print(&text)?;
    Ok(match verdict {
        Verdict::Accepted(_) => SOLVED,
        Verdict::Rejected(_) => REJECTED,
    })
}

fn read(arguments: &VerifyArguments) -> Result<String> {
    let file = std::fs::File::open(&arguments.certificate)?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST {
        bail!("it is larger than 256 MiB");
    }
    Ok(text)
}
