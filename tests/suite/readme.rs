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
        if let Some((lines, arguments)) = command(line)
            && has_its_files(arguments)
        {
            text.push_str(&shown(lines, arguments));
            inside = true;
        }
    }
    text
}

/// Whether the measured runs that a command reads are there: they are optional
/// (`data/README.md`). Without them, what is shown stays.
fn has_its_files(arguments: &str) -> bool {
    let mut files = arguments
        .split(' ')
        .filter(|argument| argument.starts_with("data/"));
    let missing = files.find(|file| !project(file).exists());
    if let Some(file) = missing {
        eprintln!("not refreshed, since `{file}` is not there: {arguments}");
    }
    missing.is_none()
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

/// Compares a document with what the commands in it print; with `UPDATE_README=1`, writes it.
pub(crate) fn check(document: &str) {
    check_file(document, refreshed);
}

/// Compares with a file of the project; with `UPDATE_README=1`, writes it.
fn check_file(name: &str, fresh: impl Fn(&str) -> String) {
    let path = project(name);
    let shipped = std::fs::read_to_string(&path).unwrap_or_default();
    let fresh = fresh(&shipped);
    let updated = std::env::var_os("UPDATE_README").is_some();
    if updated {
        std::fs::write(&path, &fresh).expect("the project's files are writable");
    }
    let stale = shipped
        .lines()
        .zip(fresh.lines())
        .find(|(old, new)| old != new);
    assert!(
        updated || shipped == fresh,
        "{name} is stale at {stale:?}: run the tests with UPDATE_README=1"
    );
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    check("README.md");
    check("docs/guide.md");
}

#[test]
fn the_documentation_of_prices_shows_what_the_program_prints() {
    check("docs/price.md");
}

/// The pictures of `docs/price.md`.
#[test]
fn the_pictures_are_what_the_program_draws() {
    for (front, file) in [
        ("memory-mfu", "llama-65b-2k-128gpu-24gb"),
        ("gpus-time", "llama-3.1-405b-8k-8192xh100"),
    ] {
        let drawn =
            std::env::temp_dir().join(format!("parlayout-{front}-{}.svg", std::process::id()));
        let output = Command::new(env!("CARGO_BIN_EXE_parlayout"))
            .args([
                "price",
                &format!("instances/{file}.toml"),
                "--pareto",
                front,
                "--svg",
            ])
            .arg(&drawn)
            .current_dir(project(""))
            .output()
            .expect("the binary runs");
        assert!(output.status.success());
        let picture = std::fs::read_to_string(&drawn).expect("it is drawn");
        std::fs::remove_file(&drawn).expect("it is there");
        check_file(&format!("docs/{front}.svg"), |_| picture.clone());
    }
}
