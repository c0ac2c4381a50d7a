//! Places in the text of a document, which is known to be JSON.

use crate::instance::error::shown;

/// The place of an error that the parser reports at a line and column, both counted from 1.
pub(super) fn of_error(text: &str, line: usize, column: usize) -> String {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    let start: usize = before.map(str::len).sum();
    let offset = start + column.saturating_sub(1);
    find(text, |from, token| from + token.len() > offset).unwrap_or_else(|| DOCUMENT.to_owned())
}

/// The place of the first number that is 0 and has a sign.
pub(super) fn negative_zero(text: &str) -> Option<String> {
    find(text, |_, token| {
        token.starts_with('-') && token.parse() == Ok(0.0)
    })
}

/// The place of the whole document.
const DOCUMENT: &str = "document";

/// A list or object that a token is in.
enum Level<'a> {
    /// Number of the current entry.
    List(usize),
    /// The current key, if there is one yet, and whether a key comes next.
    Object(Option<&'a str>, bool),
}

/// The place of the first token that is the one, by its offset and text. A bracket that opens or closes
/// is at the place of what it encloses, a comma at that of what follows.
fn find(text: &str, mut is_found: impl FnMut(usize, &str) -> bool) -> Option<String> {
    let mut levels: Vec<Level> = Vec::new();
    let mut from = 0;
    while let Some(token) = token_at(text, &mut from) {
        match token.as_bytes()[0] {
            b']' | b'}' => {
                levels.pop();
            }
            b',' => match levels.last_mut() {
                Some(Level::List(index)) => *index += 1,
                Some(Level::Object(_, key_next)) => *key_next = true,
                None => {}
            },
            b'"' => {
                if let Some(Level::Object(key, key_next @ true)) = levels.last_mut() {
                    (*key, *key_next) = (token.get(1..token.len() - 1), false);
                }
            }
            _ => {}
        }
        if is_found(from, token) {
            return Some(path(&levels));
        }
        match token.as_bytes()[0] {
            b'[' => levels.push(Level::List(0)),
            b'{' => levels.push(Level::Object(None, true)),
            _ => {}
        }
        from += token.len();
    }
    None
}

/// The token at or after an offset, which moves to its start.
fn token_at<'a>(text: &'a str, from: &mut usize) -> Option<&'a str> {
    let rest = text.get(*from..)?;
    *from += rest.find(|c: char| !c.is_ascii_whitespace())?;
    let rest = text.get(*from..)?;
    let bytes = rest.as_bytes();
    let length = match bytes[0] {
        b'"' => {
            let mut end = 1;
            while bytes.get(end).is_some_and(|&byte| byte != b'"') {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            end + 1
        }
        b'[' | b']' | b'{' | b'}' | b',' | b':' => 1,
        _ => rest
            .find(|c: char| c.is_ascii_whitespace() || ",:[]{}\"".contains(c))
            .unwrap_or(rest.len())
            .max(1),
    };
    rest.get(..length)
}

fn path(levels: &[Level]) -> String {
    let steps = levels.iter().map(|level| match level {
        Level::List(index) => format!("[{index}]"),
        Level::Object(key, _) => key.map_or_else(String::new, |key| format!(".{key}")),
    });
    let path: String = steps.collect();
    let path = path.trim_start_matches('.');
    shown(if path.is_empty() { DOCUMENT } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"a": [1, {"b,": -1, "c\"": [[], -0.0]}],
"d": -0e5 }"#;

    #[test]
    fn tokens_have_places() {
        let place = |token: &str, count: usize| {
            let mut left = count;
            find(TEXT, |_, other| {
                left -= usize::from(other == token && left > 0);
                left == 0
            })
        };
        assert_eq!(place("{", 1).as_deref(), Some("document"));
        assert_eq!(place("[", 1).as_deref(), Some("a"));
        assert_eq!(place("1", 1).as_deref(), Some("a[0]"));
        assert_eq!(place("-1", 1).as_deref(), Some("a[1].b,"));
        assert_eq!(place("-0e5", 1).as_deref(), Some("d"));
        assert_eq!(place("}", 1).as_deref(), Some("a[1]"));
        assert_eq!(place("}", 2).as_deref(), Some("document"));
        assert_eq!(place("]", 1).as_deref(), Some(r#"a[1].c\"[0]"#));
    }

    #[test]
    fn negative_zeros_are_found_and_other_numbers_are_not() {
        assert_eq!(negative_zero(TEXT).as_deref(), Some(r#"a[1].c\"[1]"#));
        assert_eq!(negative_zero("[0, \"-0\", -1e-9, 0.0]"), None);
        assert_eq!(negative_zero("[0, -1e-999]").as_deref(), Some("[1]"));
    }

    #[test]
    fn errors_are_placed_by_line_and_column() {
        assert_eq!(of_error(TEXT, 1, 8), "a[0]");
        assert_eq!(of_error(TEXT, 2, 6), "d");
        assert_eq!(of_error(TEXT, 9, 9), "document");
    }
}
