//! How numbers are written for people.

pub(crate) use crate::count::{counted, grouped};

/// Binary gigabytes with one decimal, without the unit.
pub(crate) fn gib(amount: f64) -> String {
    format!("{amount:.1}")
}

/// A share of the peak speed: `70.5 %`.
pub(crate) fn mfu(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The same with two decimals: `70.51 %`.
pub(crate) fn exact_mfu(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// A duration with its unit and three or four digits: `26.5 s`, `380 ms`.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 10.0 {
        format!("{seconds:.2} s")
    } else {
        format!("{seconds:.1} s")
    }
}

/// Milliseconds for short steps, else seconds; with the factor from seconds.
pub(crate) fn unit_of_time(longest: f64) -> (&'static str, f64) {
    if longest < 1.0 {
        ("ms", 1e3)
    } else {
        ("s", 1.0)
    }
}

/// A long time in its natural unit: `42.0 s`, `3.2 h`, `12.5 days`.
pub(crate) fn run_time(seconds: f64) -> String {
    let hours = seconds / 3600.0;
    if hours < 0.2 {
        duration(seconds)
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

/// A number of parameters: `13.0 B`, `494 M`.
pub(crate) fn count(parameters: u64) -> String {
    let millions = parameters as f64 / 1e6;
    if millions < 999.5 {
        format!("{millions:.0} M")
    } else {
        format!("{:.1} B", millions / 1e3)
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

/// A difference of utilisations in points.
pub(crate) fn points(difference: f64) -> String {
    let points = difference * 100.0;
    if points.abs() < 0.005 {
        "equal".to_owned()
    } else if points.abs() < 0.095 {
        format!("{points:+.2}")
    } else {
        format!("{points:+.1}")
    }
}

/// A number with its sign, none if it is shown as 0.
pub(crate) fn signed(number: f64, decimals: usize) -> String {
    let shown = format!("{number:+.decimals$}");
    if shown.chars().all(|c| !c.is_ascii_digit() || c == '0') {
        return shown.trim_start_matches(['+', '-']).to_owned();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(duration(26.53), "26.5 s");
        assert_eq!(duration(2.653), "2.65 s");
        assert_eq!(duration(0.38), "380 ms");
        assert_eq!(percent(0.0321), "3.2 %");
        assert_eq!(percent(0.321), "32 %");
        assert_eq!(percent(f64::NAN), "-");
        assert_eq!(risk(1e-9), "<0.1 %");
        assert_eq!(risk(1.0), ">99.9 %");
        assert_eq!(points(-0.013), "-1.3");
        assert_eq!(points(-0.0002), "-0.02");
        assert_eq!(points(0.0), "equal");
        assert_eq!(signed(-0.001, 2), "0.00");
    }
}
