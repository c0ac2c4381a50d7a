//! Names that every LP and MPS reader takes.

use std::collections::HashSet;

/// Words that start a section of an LP file or stand for a number or a bound.
const RESERVED: [&str; 32] = [
    "bin", "binaries", "binary", "bound", "bounds", "end", "endata", "free", "gen", "general",
    "generals", "inf", "infinity", "int", "integer", "integers", "max", "maximise", "maximize",
    "maximum", "min", "minimise", "minimize", "minimum", "nan", "s.t.", "semi", "semis", "sos",
    "st", "subject", "such",
];

/// Legal and pairwise different names, each as close to the given one as that allows.
pub(super) fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    names
        .map(|name| {
            let legal = legal(name);
            let mut candidate = legal.clone();
            let mut copy = 2;
            while !taken.insert(candidate.clone()) {
                candidate = format!("{legal}_{copy}");
                copy += 1;
            }
            candidate
        })
        .collect()
}

/// Letters, digits and `_ . , ( ) #`; not like a number, not a reserved word, not too long.
pub(super) fn legal(name: &str) -> String {
    let mut legal: String = name
        .chars()
        .take(200)
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() => c,
            '_' | '.' | ',' | '(' | ')' | '#' => c,
            _ => '_',
        })
        .collect();
    let mut chars = legal.chars();
    let like_a_number = match (chars.next(), chars.next()) {
        (Some('e' | 'E'), Some(second)) => second.is_ascii_digit(),
        (Some(first), _) => !first.is_ascii_alphabetic() && first != '_',
        (None, _) => true,
    };
    if like_a_number {
        legal.insert(0, '_');
    }
    if RESERVED.contains(&legal.to_ascii_lowercase().as_str()) {
        legal.push('_');
    }
    legal
}
