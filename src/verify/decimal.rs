//! Decimal figures and their simpler neighbours.

/// A positive decimal `mantissa 10^exponent` without trailing zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    mantissa: u64,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal that reads as `value`; `None` for 0 and what is not finite.
    fn new(value: f64) -> Option<Self> {
        if value == 0.0 || !value.is_finite() {
            return None;
        }
        let text = format!("{:e}", value.abs());
        let (digits, exponent) = text.split_once('e')?;
        let decimals = digits
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        Some(Self {
            mantissa: digits.replace('.', "").parse().ok()?,
            exponent: exponent.parse::<i32>().ok()? - decimals as i32,
        })
    }

    fn value(self) -> Option<f64> {
        format!("{}e{}", self.mantissa, self.exponent).parse().ok()
    }

    fn digits(self) -> u32 {
        self.mantissa.ilog10() + 1
    }

    /// The largest and the smallest decimal of so many digits that are not above and not below.
    fn rounded(self, digits: u32) -> [Self; 2] {
        let dropped = self.digits().saturating_sub(digits);
        let unit = 10_u64.pow(dropped);
        [self.mantissa / unit, self.mantissa.div_ceil(unit)].map(|mantissa| Self {
            mantissa,
            exponent: self.exponent + dropped as i32,
        })
    }

    /// The next smaller decimal of as many digits.
    fn before(self) -> Self {
        let digits = self.digits();
        if self.mantissa == 10_u64.pow(digits - 1) {
            Self {
                mantissa: 10_u64.pow(digits) - 1,
                exponent: self.exponent - 1,
            }
        } else {
            Self {
                mantissa: self.mantissa - 1,
                exponent: self.exponent,
            }
        }
    }
}

/// `value` rounded down and up to each number of digits below its own, the fewest first.
pub(super) fn shorter(value: f64) -> Vec<f64> {
    let Some(decimal) = Decimal::new(value) else {
        return Vec::new();
    };
    (1..decimal.digits())
        .flat_map(|digits| decimal.rounded(digits))
        .filter_map(Decimal::value)
        .map(|shorter| shorter.copysign(value))
        .collect()
}

/// The neighbour of `value` nearer to 0 with as many digits; `None` for 0.
pub(super) fn before(value: f64) -> Option<f64> {
    let before = Decimal::new(value)?.before().value()?;
    Some(before.copysign(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_shortened_digit_by_digit() {
        assert_eq!(shorter(0.853), [0.8, 0.9, 0.85, 0.86]);
        assert_eq!(shorter(-20.5), [-20.0, -30.0, -20.0, -21.0]);
        assert!(shorter(3e-7).is_empty());
        assert!(shorter(0.0).is_empty());
    }

    #[test]
    fn neighbours_have_as_many_digits() {
        assert_eq!(before(0.85), Some(0.84));
        assert_eq!(before(1.0), Some(0.9));
        assert_eq!(before(0.001), Some(0.0009));
        assert_eq!(before(-0.01), Some(-0.009));
        assert_eq!(before(0.0), None);
    }
}
