//! Width, colour and line breaks of what people read.

use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_width::UnicodeWidthStr;

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

    /// Lines that are broken to the width, in one colour.
    pub(crate) fn wrapped(&self, meaning: Meaning, text: &str) -> String {
        self.paint(meaning, &wrap(text, 2))
    }
}

/// Breaks `text` at spaces into lines of at most [`WIDTH`] columns; lines after the first start
/// with `hang` spaces, the first one with the spaces of `text`. A word that is longer than a line is
/// cut. Control characters, which could come from a file's name, are replaced; what belongs to the
/// number before it (`%`, `x14`) stays with it.
pub(crate) fn wrap(text: &str, hang: usize) -> String {
    wrap_within(text, hang, WIDTH)
}

/// Each text on lines of its own, broken as by [`wrap`] with two spaces.
pub(crate) fn paragraph<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let lines = texts.into_iter().map(|text| wrap(text.as_ref(), 2));
    lines.collect::<Vec<_>>().join("\n")
}

/// As [`wrap`], with another width.
pub(crate) fn wrap_within(text: &str, hang: usize, width: usize) -> String {
    const JOINT: &str = "\u{a0}";
    let plain = text.trim_start_matches(' ');
    let [first, hang] = [text.len() - plain.len(), hang].map(|count| " ".repeat(count));
    let mut joined = String::new();
    for (position, word) in plain.split(' ').enumerate() {
        let repeats = word
            .strip_prefix('x')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        joined.push_str(match position {
            0 => "",
            _ if repeats || word.starts_with('%') => JOINT,
            _ => " ",
        });
        // A path or a name that is longer than a line breaks between its parts.
        let is_long = columns(word) + hang.len() > width;
        let joint = if word.contains('/') { '/' } else { '-' };
        for c in word.chars() {
            joined.push(printable(c));
            if is_long && c == joint {
                joined.push(BREAK);
            }
        }
    }
    let options = Options::new(width)
        .initial_indent(&first)
        .subsequent_indent(&hang)
        .word_separator(WordSeparator::Custom(parts))
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(&joined, options)
        .replace(JOINT, " ")
        .replace(BREAK, "")
}

/// Where a word may be broken: a blank of no width.
const BREAK: char = '\u{200b}';

/// The parts of a line that stay whole.
fn parts(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    Box::new(line.split_inclusive([' ', BREAK]).map(Word::from))
}

/// The argument as a shell takes it.
#[must_use]
pub fn shell_word(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

/// Columns that `text` takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Replaces control characters.
pub(crate) fn printable(c: char) -> char {
    if c.is_control() { '?' } else { c }
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
        let broken = wrap_within("config.json of meta-llama/Llama-2-13b-hf", 0, 24);
        assert_eq!(broken, "config.json of\nmeta-llama/\nLlama-2-13b-hf");
        let whole = wrap_within("of meta-llama/Llama-2-7b", 0, 23);
        assert_eq!(whole, "of\nmeta-llama/Llama-2-7b");
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
