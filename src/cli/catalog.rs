//! `parlayout catalog`.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use parlayout::catalog;
use parlayout::report::{Colour, catalog as report};

use super::{Format, SOLVED, print, style};

#[derive(Debug, Args)]
pub(crate) struct CatalogArguments {
    /// Only presets whose kind or name contains this text.
    filter: Option<String>,
    /// Say everything about one GPU, and how to describe your own.
    #[arg(long, value_name = "GPU", conflicts_with = "filter")]
    explain: Option<String>,
    /// Format of the list.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &CatalogArguments, colour: Colour) -> Result<u8> {
    if let Some(name) = &arguments.explain {
        let gpu = catalog::explain(name)
            .map_err(|unknown| anyhow!("{}\nhint: {}", unknown.text(), unknown.hint()))?;
        print(&match arguments.format {
            Format::Table => report::explanation(&gpu, &style(colour, String::new())),
            Format::Json => report::explanation_json(&gpu),
        })?;
        return Ok(SOLVED);
    }
    let wanted = arguments
        .filter
        .as_deref()
        .unwrap_or_default()
        .to_lowercase();
    // Kinds may be named in the plural.
    let kind = wanted.strip_suffix('s').unwrap_or(&wanted);
    let rows: Vec<report::CatalogRow> = catalog::entries()
        .into_iter()
        .filter(|entry| entry.name.contains(&wanted) || entry.kind.as_str().contains(kind))
        .map(|entry| report::CatalogRow {
            kind: entry.kind.as_str().to_owned(),
            name: entry.name,
            facts: entry.figures,
            source: entry.source,
        })
        .collect();
    if rows.is_empty() {
        bail!("no preset has `{wanted}` in its kind or name; `parlayout catalog` lists all");
    }
    print(&match arguments.format {
        Format::Table => report::table(&rows, &style(colour, String::new())),
        Format::Json => report::json(&rows),
    })?;
    Ok(SOLVED)
}
