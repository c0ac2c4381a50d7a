//! What the README shows is what the program prints.

use std::fmt::Write as _;
use std::process::Command;

use crate::support::project;

/// The README with the output of every command that it names: a line
/// `<!-- output: ARGUMENTS -->`, or `<!-- output(FIRST-LAST): … -->` for some lines, is followed by
/// what `parlayout ARGUMENTS` prints, up to `<!-- end -->`.
fn refreshed(readme: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for line in readme.lines() {
        inside &= line != "<!-- end -->";
        if inside {
            continue;
        }
        writeln!(text, "{line}").expect("text takes every write");
        if let Some((lines, arguments)) = command(line) {
            text.push_str(&shown(lines, arguments));
            inside = true;
        }
    }
    text
}

/// The lines to show (from 1) and the arguments of a marker.
fn command(line: &str) -> Option<(Option<(usize, usize)>, &str)> {
    let marker = line.strip_prefix("<!-- output")?.strip_suffix(" -->")?;
    let (range, arguments) = marker.split_once(": ")?;
    let range = range
        .strip_prefix('(')
        .and_then(|range| range.strip_suffix(')'));
    let lines = range.map(|range| {
        let (first, last) = range.split_once('-').expect("a range is `FIRST-LAST`");
        (
            first.parse().expect("a line"),
            last.parse().expect("a line"),
        )
    });
    Some((lines, arguments))
}

fn shown(lines: Option<(usize, usize)>, arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_parlayout"))
        .args(arguments.split(' '))
        .current_dir(project(""))
        .output()
        .expect("the binary runs");
    assert!(
        output.stderr.is_empty(),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).expect("output is UTF-8");
    let (first, last) = lines.unwrap_or((1, usize::MAX));
    let kept: Vec<&str> = printed
        .lines()
        .skip(first - 1)
        .take(last - first + 1)
        .collect();
    if arguments.contains("--format markdown") {
        return format!("\n{}\n\n", kept.join("\n").trim_end());
    }
    format!(
        "```\n$ parlayout {arguments}\n{}\n```\n",
        kept.join("\n").trim_end()
    )
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    check("README.md");
}

/// Compares a document with what the commands in it print; with `UPDATE_README=1`, writes it.
pub(crate) fn check(document: &str) {
    let path = project(document);
    let readme = std::fs::read_to_string(&path).expect("the project has this document");
    let fresh = refreshed(&readme);
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&path, &fresh).expect("the README is writable");
    }
    let stale = readme
        .lines()
        .zip(fresh.lines())
        .find(|(old, new)| old != new);
    let updated = std::env::var_os("UPDATE_README").is_some();
    assert!(
        updated || readme == fresh,
        "{document} is stale at {stale:?}: run the tests with UPDATE_README=1"
    );
}
