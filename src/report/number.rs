//! How numbers are written for people.

use crate::quantity::{Bytes, Mfu, Seconds};

/// Binary gigabytes with one decimal, without the unit.
pub(crate) fn gib(amount: Bytes) -> String {
    format!("{:.1}", amount.gib())
}

/// A duration with its unit and three or four digits: `26.5 s`, `380 ms`.
pub(crate) fn duration(duration: Seconds) -> String {
    let seconds = duration.value();
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 10.0 {
        format!("{seconds:.2} s")
    } else {
        format!("{seconds:.1} s")
    }
}

/// A long time in its natural unit: `42.0 s`, `3.2 h`, `12.5 days`.
pub(crate) fn run_time(time: Seconds) -> String {
    let hours = time.value() / 3600.0;
    if hours < 0.2 {
        duration(time)
    } else if hours < 48.0 {
        format!("{hours:.1} h")
    } else {
        format!("{:.1} days", hours / 24.0)
    }
}

/// An amount with its thousands apart; one decimal where it is small.
pub(crate) fn amount(number: f64) -> String {
    if number < 99.95 {
        format!("{number:.1}")
    } else {
        grouped(number.round() as u64)
    }
}

/// A share as a whole percentage; one decimal below 10 %, where it matters.
pub(crate) fn percent(share: f64) -> String {
    let percentage = share * 100.0;
    if !percentage.is_finite() {
        "-".to_owned()
    } else if percentage == 0.0 {
        "0 %".to_owned()
    } else if percentage.abs() < 9.95 {
        format!("{percentage:.1} %")
    } else {
        format!("{percentage:.0} %")
    }
}

/// A probability as a percentage that never claims certainty.
pub(crate) fn risk(probability: f64) -> String {
    if probability < 0.001 {
        "<0.1 %".to_owned()
    } else if probability > 0.999 {
        ">99.9 %".to_owned()
    } else {
        percent(probability)
    }
}

/// [`mfu_distance`] in words: `-1.3 points`, `as high`.
pub(crate) fn mfu_points(choice: Mfu, other: Mfu) -> String {
    match mfu_distance(choice, other).as_str() {
        "equal" => "as high".to_owned(),
        points => format!("{points} points"),
    }
}

/// Distance of `other` from `choice` in points of MFU.
pub(crate) fn mfu_distance(choice: Mfu, other: Mfu) -> String {
    let points = (other.value() - choice.value()) * 100.0;
    if points.abs() < 0.005 {
        "equal".to_owned()
    } else if points.abs() < 0.095 {
        format!("{points:+.2}")
    } else {
        format!("{points:+.1}")
    }
}

/// A count with its thousands apart.
pub(crate) fn grouped(count: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(duration(Seconds::new(26.53)), "26.5 s");
        assert_eq!(duration(Seconds::new(2.653)), "2.65 s");
        assert_eq!(duration(Seconds::new(0.38)), "380 ms");
        assert_eq!(percent(0.0321), "3.2 %");
        assert_eq!(percent(0.321), "32 %");
        assert_eq!(percent(f64::NAN), "-");
        assert_eq!(risk(1e-9), "<0.1 %");
        assert_eq!(risk(1.0), ">99.9 %");
        assert_eq!(mfu_distance(Mfu::new(0.7), Mfu::new(0.687)), "-1.3");
        assert_eq!(mfu_distance(Mfu::new(0.7), Mfu::new(0.6998)), "-0.02");
        assert_eq!(mfu_distance(Mfu::new(0.7), Mfu::new(0.7)), "equal");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
    }
}
