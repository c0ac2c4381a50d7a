//! Finds numbers in lines of text.

/// The text after `key`.
pub(super) fn after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.find(key).map(|start| &line[start + key.len()..])
}

/// The number after `key`: with thousands separators, with `K`, `M`, `G`, `B` or `T` for powers of a
/// thousand, whatever follows it.
pub(super) fn number_after(line: &str, key: &str) -> Option<f64> {
    number(after(line, key)?)
}

/// The number at the start of a text.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | 'e' | 'E' | '+' | '-')))
        .unwrap_or(text.len());
    // A comma that ends a clause, or a dot that ends a sentence, is no part of the number.
    let digits = text[..end].trim_end_matches(['.', ',', 'e', 'E', '+', '-']);
    let number: f64 = digits.replace(',', "").parse().ok()?;
    let factor = match text[digits.len()..].chars().next() {
        Some('K') => 1e3,
        Some('M') if !text[digits.len()..].starts_with("Mi") => 1e6,
        Some('B') => 1e9,
        Some('T') => 1e12,
        _ => 1.0,
    };
    number.is_finite().then_some(number * factor)
}

/// The amount of memory after `key`, in bytes: `45.20GiB`, `3442.16MiB`, `79.15 GiB`.
pub(super) fn memory_after(line: &str, key: &str) -> Option<f64> {
    let text = after(line, key)?.trim_start();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
    let factor = match unit.trim_start() {
        unit if unit.starts_with("GiB") => 1024.0 * 1024.0 * 1024.0,
        unit if unit.starts_with("MiB") => 1024.0 * 1024.0,
        unit if unit.starts_with("GB") => 1e9,
        unit if unit.starts_with("MB") => 1e6,
        _ => return None,
    };
    let digits = &text[..text.len() - unit.len()];
    let number: f64 = digits.replace(',', "").parse().ok()?;
    Some(number * factor)
}

/// The text without escape sequences for colour.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' {
            // `ESC [ … letter`.
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_every_spelling() {
        assert_eq!(number_after("tps: 1,234  tflops", "tps: "), Some(1234.0));
        assert_eq!(number_after("ms: 2.34K | tokens", "ms: "), Some(2340.0));
        assert_eq!(number_after("loss: 1.5E+01 |", "loss: "), Some(15.0));
        assert_eq!(number_after("step: 10.", "step: "), Some(10.0));
        assert_eq!(number_after("step: none", "step: "), None);
    }

    #[test]
    fn memory_has_units() {
        assert_eq!(
            memory_after("Peak 1024.00MiB.", "Peak "),
            Some(1_073_741_824.0)
        );
        assert_eq!(memory_after("of 2 GB of", "of "), Some(2e9));
        assert_eq!(memory_after("of 2 of", "of "), None);
    }

    #[test]
    fn colours_are_dropped() {
        assert_eq!(plain("\u{1b}[31mstep: 1\u{1b}[39m x"), "step: 1 x");
    }
}
