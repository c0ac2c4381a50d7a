//! Counts in words, as every message and table writes them: `1 GPU`, `16,384 GPUs`.

/// A count with its thousands apart.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count of things of a regular name, which is in the plural unless it is one.
#[must_use]
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_thousands_are_apart() {
        assert_eq!(counted(1_u32, "GPU"), "1 GPU");
        assert_eq!(counted(0_usize, "run"), "0 runs");
        assert_eq!(counted(7875_u64, "GPU"), "7,875 GPUs");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
    }
}
