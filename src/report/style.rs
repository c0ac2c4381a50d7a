//! Width, colour and line breaks of what people read.

use tabled::grid::util::string::get_text_width;
use tabled::settings::{Style as Borders, Width};

/// Nothing is printed wider than this many columns.
pub(crate) const WIDTH: usize = 80;

/// How output for people looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for colour are written.
    pub colour: Colour,
    /// The arguments that named the instance, repeated in the command that comes next.
    pub instance_arguments: String,
}

/// Whether escape sequences for colour are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Yes: the output goes to a terminal, or the user asked for it.
    Always,
    /// No: the output goes to a file or another program.
    Never,
}

/// What a piece of text means, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Heading,
    Good,
    Warning,
    Bad,
    Command,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            colour: Colour::Never,
            instance_arguments: "FILE".to_owned(),
        }
    }
}

impl Style {
    /// Colours each line of `text`, so that a pager may cut between lines.
    pub(crate) fn paint(&self, meaning: Meaning, text: &str) -> String {
        if self.colour == Colour::Never {
            return text.to_owned();
        }
        let code = match meaning {
            Meaning::Heading => "1",
            Meaning::Good => "1;32",
            Meaning::Warning => "33",
            Meaning::Bad => "1;31",
            Meaning::Command => "36",
        };
        let painted: Vec<String> = text
            .lines()
            .map(|line| format!("\u{1b}[{code}m{line}\u{1b}[0m"))
            .collect();
        painted.join("\n")
    }
}

/// A table in the project's look: columns apart by bars, a line under the header, no frame.
pub(crate) fn bare(mut table: tabled::Table) -> tabled::Table {
    table.with(Borders::psql());
    table
}

/// Renders the table, breaking words in its widest column where it would exceed [`WIDTH`].
pub(crate) fn render(mut table: tabled::Table) -> String {
    if table.total_width() > WIDTH {
        table.with(
            Width::wrap(WIDTH)
                .priority(tabled::settings::peaker::Priority::max(true))
                .keep_words(true),
        );
    }
    let lines: Vec<String> = table
        .to_string()
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// Breaks the lines of one column of a table, so that the whole stays within [`WIDTH`]. Lines after
/// the first of each break are two spaces further in.
pub(crate) fn fit_column<const N: usize>(rows: &mut [[String; N]], column: usize) {
    const NARROWEST: usize = 16;
    let width = |index: usize| {
        let cells = rows.iter().flat_map(|row| row[index].lines());
        cells.map(columns).max().unwrap_or(0)
    };
    let others: usize = (0..N).filter(|&index| index != column).map(width).sum();
    // A blank on both sides of every cell, and a bar between two.
    let room = (WIDTH + 1).saturating_sub(others + 3 * N).max(NARROWEST);
    for row in rows {
        let lines = row[column].lines().map(|line| {
            let indent = line.len() - line.trim_start_matches(' ').len();
            wrap_within(line, indent + 2, room)
        });
        row[column] = lines.collect::<Vec<_>>().join("\n");
    }
}

/// Breaks `text` at spaces into lines of at most [`WIDTH`] columns; lines after the first start
/// with `hang` spaces, the first one with the spaces of `text`. A word that is longer than a line is cut. Control characters, which
/// could come from a file's name, are replaced; numbers stay beside their unit.
pub(crate) fn wrap(text: &str, hang: usize) -> String {
    wrap_within(text, hang, WIDTH)
}

/// As [`wrap`], with another width.
pub(crate) fn wrap_within(text: &str, hang: usize, width: usize) -> String {
    let mut lines = Vec::new();
    let indent = text.len() - text.trim_start_matches(' ').len();
    let mut line = " ".repeat(indent);
    for mut word in words(&text[indent..]) {
        loop {
            let blank = line.is_empty() || line.chars().all(|c| c == ' ');
            let taken = columns(&line) + usize::from(!blank);
            let room = width.saturating_sub(taken);
            if columns(&word) <= room {
                if !blank {
                    line.push(' ');
                }
                line.push_str(&word);
                break;
            }
            if blank {
                let rest = word.split_off(fitting_prefix(&word, room));
                line.push_str(&word);
                word = rest;
            }
            lines.push(std::mem::replace(&mut line, " ".repeat(hang)));
        }
    }
    lines.push(line);
    lines.join("\n")
}

/// The words of `text`; what belongs to the number before it (`%`, `x14`) stays with it.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let word: String = word.chars().map(printable).collect();
        let repeats = word
            .strip_prefix('x')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        match words.last_mut() {
            Some(last) if repeats || word.starts_with('%') => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => words.push(word),
        }
    }
    words
}

/// Columns that `text` takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    get_text_width(text)
}

/// Replaces control characters.
pub(crate) fn printable(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

/// Bytes of the longest prefix that takes at most `room` columns, but at least one character.
fn fitting_prefix(word: &str, room: usize) -> usize {
    let mut end = 0;
    for (start, c) in word.char_indices() {
        let next = start + c.len_utf8();
        if end > 0 && columns(&word[..next]) > room {
            break;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, hang: usize) -> Vec<String> {
        let lines: Vec<String> = wrap(text, hang).lines().map(str::to_owned).collect();
        for line in &lines {
            assert!(columns(line) <= WIDTH, "{line}");
        }
        lines
    }

    #[test]
    fn text_breaks_at_spaces() {
        let lines = check(&"word ".repeat(30), 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("  word"));
        assert!(check(&format!("   {}", "word ".repeat(30)), 2)[0].starts_with("   word"));
    }

    #[test]
    fn words_longer_than_a_line_are_cut() {
        assert_eq!(check(&"x".repeat(200), 4).len(), 3);
        assert_eq!(check(&"層".repeat(100), 0).len(), 3);
    }

    #[test]
    fn numbers_stay_beside_their_unit() {
        let lines = check(&format!("{} 70.5 % MFU", "x".repeat(74)), 2);
        assert_eq!(lines[1], "  70.5 % MFU");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(wrap("a\u{1b}[31mb\nc", 0), "a?[31mb?c");
    }

    #[test]
    fn colour_appears_only_when_asked_for() {
        let mut style = Style::default();
        assert_eq!(style.paint(Meaning::Bad, "no"), "no");
        style.colour = Colour::Always;
        assert_eq!(style.paint(Meaning::Bad, "no"), "\u{1b}[1;31mno\u{1b}[0m");
    }
}
