//! Physical quantities: bytes, FLOP, seconds and their rates.
//!
//! Each is a newtype over `f64` in SI base units, with only the operators that make sense:
//! `Bytes / BytesPerSecond = Seconds`, but no `Bytes + Seconds`.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $unit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
        pub struct $name(f64);

        impl $name {
            /// Nothing.
            pub const ZERO: Self = Self(0.0);

            #[doc = concat!("The quantity of `value` ", $unit, ".")]
            #[must_use]
            pub const fn new(value: f64) -> Self {
                Self(value)
            }

            #[doc = concat!("The number of ", $unit, ".")]
            #[must_use]
            pub const fn value(self) -> f64 {
                self.0
            }

            /// The smaller of the two.
            #[must_use]
            pub const fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }

            /// The larger of the two.
            #[must_use]
            pub const fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }

        impl Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }

        impl Sum for $name {
            #[inline]
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                let mut sum = 0.0;
                for quantity in iter {
                    sum += quantity.0;
                }
                Self(sum)
            }
        }
    };
}

quantity!(
    /// An amount of memory or traffic.
    Bytes,
    "bytes"
);
quantity!(
    /// A number of floating-point operations.
    Flops,
    "floating-point operations"
);
quantity!(
    /// A duration.
    Seconds,
    "seconds"
);
quantity!(
    /// A memory or network bandwidth.
    BytesPerSecond,
    "bytes a second"
);
quantity!(
    /// An arithmetic throughput.
    FlopsPerSecond,
    "floating-point operations a second"
);
quantity!(
    /// Model FLOP utilisation: the share (0 to 1) of the accelerators' peak that the model's
    /// own arithmetic reaches. Comparable only under one convention of what that arithmetic is.
    Mfu,
    "of the peak (a share)"
);

/// Bytes of one element of a tensor: how wide a number format is in memory and on the network.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct ElementWidth(f64);

impl ElementWidth {
    /// bf16 and fp16.
    pub const SIXTEEN_BITS: Self = Self(2.0);
    /// fp32.
    pub const THIRTY_TWO_BITS: Self = Self(4.0);

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> f64 {
        self.0
    }
}

impl Mul<f64> for ElementWidth {
    type Output = Bytes;
    fn mul(self, elements: f64) -> Bytes {
        Bytes(self.0 * elements)
    }
}

impl Div<BytesPerSecond> for Bytes {
    type Output = Seconds;
    fn div(self, bandwidth: BytesPerSecond) -> Seconds {
        Seconds(self.0 / bandwidth.0)
    }
}

impl Div<FlopsPerSecond> for Flops {
    type Output = Seconds;
    fn div(self, throughput: FlopsPerSecond) -> Seconds {
        Seconds(self.0 / throughput.0)
    }
}

impl Mul<Seconds> for FlopsPerSecond {
    type Output = Flops;
    fn mul(self, duration: Seconds) -> Flops {
        Flops(self.0 * duration.0)
    }
}

impl Bytes {
    /// Binary gigabytes (2^30 bytes), the unit of GPU tools.
    #[must_use]
    pub const fn gib(self) -> f64 {
        self.0 / GIB
    }

    /// The amount of `gib` binary gigabytes.
    #[must_use]
    pub const fn from_gib(gib: f64) -> Self {
        Self(gib * GIB)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} GiB", self.gib())
    }
}

impl fmt::Display for Mfu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", self.0 * 100.0)
    }
}

/// Bytes of a binary gigabyte.
const GIB: f64 = (1_u64 << 30) as f64;

/// A quantity that instance and catalog files write as a number and a unit (`"80 GB"`).
pub trait Measured: Sized {
    /// What the quantity is called in messages.
    const NOUN: &'static str;
    /// Accepted units with the factor to the base unit, most usual first.
    const UNITS: &'static [(&'static str, f64)];
    /// The quantity of `value` base units.
    fn from_base(value: f64) -> Self;
}

impl Measured for Bytes {
    const NOUN: &'static str = "memory size";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("GB", 1e9),
        ("GiB", GIB),
        ("MB", 1e6),
        ("MiB", (1_u64 << 20) as f64),
        ("TB", 1e12),
        ("TiB", (1_u64 << 40) as f64),
        ("kB", 1e3),
        ("KiB", 1024.0),
        ("B", 1.0),
    ];
    fn from_base(value: f64) -> Self {
        Self(value)
    }
}

impl Measured for BytesPerSecond {
    const NOUN: &'static str = "bandwidth";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("GB/s", 1e9),
        ("Gb/s", 1e9 / 8.0),
        ("GiB/s", GIB),
        ("TB/s", 1e12),
        ("Tb/s", 1e12 / 8.0),
        ("MB/s", 1e6),
        ("Mb/s", 1e6 / 8.0),
        ("B/s", 1.0),
    ];
    fn from_base(value: f64) -> Self {
        Self(value)
    }
}

impl Measured for FlopsPerSecond {
    const NOUN: &'static str = "throughput";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("TFLOP/s", 1e12),
        ("PFLOP/s", 1e15),
        ("GFLOP/s", 1e9),
        ("FLOP/s", 1.0),
    ];
    fn from_base(value: f64) -> Self {
        Self(value)
    }
}

impl Measured for Seconds {
    const NOUN: &'static str = "duration";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("ns", 1e-9),
        ("s", 1.0),
    ];
    fn from_base(value: f64) -> Self {
        Self(value)
    }
}

/// Parses a number followed by a unit, such as `80 GB` or `200 Gb/s`.
///
/// # Errors
///
/// A message for the user (lowercase, no final period) when the number is missing, not finite
/// or negative, or when the unit is missing or not one of `Q::UNITS`.
pub fn parse<Q: Measured>(text: &str) -> Result<Q, String> {
    let text = text.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+' | 'e' | 'E')))
        .unwrap_or(text.len());
    let (digits, unit) = (text[..split].replace('_', ""), text[split..].trim());
    let units = || {
        let names: Vec<String> = Q::UNITS
            .iter()
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        names.join(", ")
    };
    if digits.is_empty() {
        return Err(format!(
            "`{text}` is not a {}: write a number and a unit, one of {}",
            Q::NOUN,
            units()
        ));
    }
    let Ok(number) = digits.parse::<f64>() else {
        return Err(format!("`{digits}` is not a number"));
    };
    if unit.is_empty() {
        return Err(format!("`{text}` has no unit: write one of {}", units()));
    }
    let Some((_, factor)) = Q::UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!(
            "`{unit}` is not a unit of a {}: write one of {}",
            Q::NOUN,
            units()
        ));
    };
    let value = number * factor;
    if !value.is_finite() || value < 0.0 {
        return Err(format!("`{text}` is not a valid {}", Q::NOUN));
    }
    Ok(Q::from_base(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_quantities_are_read_in_base_units() {
        assert_eq!(parse::<Bytes>("80 GB"), Ok(Bytes::new(80e9)));
        assert_eq!(parse::<Bytes>("1 GiB"), Ok(Bytes::from_gib(1.0)));
        assert_eq!(
            parse::<BytesPerSecond>("200 Gb/s"),
            Ok(BytesPerSecond::new(25e9))
        );
        assert_eq!(
            parse::<BytesPerSecond>("25GB/s"),
            Ok(BytesPerSecond::new(25e9))
        );
        assert_eq!(
            parse::<FlopsPerSecond>("312 TFLOP/s"),
            Ok(FlopsPerSecond::new(312e12))
        );
        assert_eq!(parse::<Seconds>("1.5 ms"), Ok(Seconds::new(1.5e-3)));
    }

    #[test]
    fn unreadable_quantities_say_what_would_be_right() {
        let check = |text: &str, part: &str| {
            let message = parse::<Bytes>(text).expect_err("must be refused");
            assert!(message.contains(part), "{message}");
        };
        check("80", "has no unit");
        check("80 Gb/s", "not a unit of a memory size");
        check("GB", "write a number and a unit");
        check("-1 GB", "not a valid memory size");
        check("1e999 GB", "not a valid memory size");
        check("NaN GB", "write a number and a unit");
        check("1-2 GB", "not a number");
    }

    #[test]
    fn rates_turn_amounts_into_durations() {
        assert_eq!(
            Bytes::new(50.0) / BytesPerSecond::new(25.0),
            Seconds::new(2.0)
        );
        assert_eq!(
            Flops::new(50.0) / FlopsPerSecond::new(25.0),
            Seconds::new(2.0)
        );
    }
}
