//! Random draws that are the same everywhere: `SplitMix64` (Steele, Lea and Flood, *Fast Splittable
//! Pseudorandom Number Generators*, OOPSLA 2014) and the shuffle of Fisher and Yates.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream that starts from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// `count` different numbers below `below`, in random order: the first steps of a shuffle. The
    /// remainder of a division picks each, which favours small numbers by less than `below / 2^64`.
    ///
    /// # Panics
    ///
    /// If `count` exceeds `below`.
    pub fn draw(&mut self, count: usize, below: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..below).collect();
        for position in 0..count {
            let left = (below - position) as u64;
            let other = position + (self.next_bits() % left) as usize;
            numbers.swap(position, other);
        }
        numbers.truncate(count);
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_its_authors() {
        // First outputs for the seed 1234567 of the reference implementation in C.
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next_bits()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn draws_are_different_numbers() {
        let mut random = Random::new(1);
        let mut drawn = random.draw(10, 10);
        drawn.sort_unstable();
        assert_eq!(drawn, (0..10).collect::<Vec<_>>());
        assert_eq!(Random::new(7).draw(3, 100), Random::new(7).draw(3, 100));
    }
}
