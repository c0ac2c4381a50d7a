//! Changes of a right input, the same for the same number.

/// A sequence of numbers that follows from its start (xorshift64*).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(start: u64) -> Self {
        let mut random = Self(start.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.below(2);
        random
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        number as usize % end.max(1)
    }

    pub(super) fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// Numbers and words that inputs stumble over.
pub(super) const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "64",
    "1e21",
    "1e308",
    "1e-300",
    "-0.0",
    "nan",
    "inf",
    "0.5",
    "4294967295",
    "4294967296",
    "1048576",
    "18446744073709551615",
    "9223372036854775807",
    "1024",
    "99999999999999999999",
    "\"\"",
    "true",
    "[]",
    "[1, 2]",
    "{}",
    "null",
    "1 PB",
    "\u{ff11}",
    "1_0",
];

/// One change of a text.
fn change(text: &mut Vec<u8>, others: &[String], random: &mut Random) {
    let at = random.below(text.len() + 1);
    let end = (at + random.below(12)).min(text.len());
    match random.below(9) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..end)),
        2 => text.insert(at, random.below(256) as u8),
        3 if at < text.len() => text[at] ^= 1 << random.below(8),
        4 => {
            let part = text[at..end].to_vec();
            drop(text.splice(at..at, part));
        }
        5 => {
            // A piece of another input, from the start of a line.
            let other = &others[random.below(others.len())];
            let lines: Vec<&str> = other.split_inclusive('\n').collect();
            let from = random.below(lines.len());
            let piece = lines[from..(from + 1 + random.below(3)).min(lines.len())].concat();
            drop(text.splice(at..at, piece.into_bytes()));
        }
        6 => {
            let lines: Vec<Vec<u8>> = text
                .split_inclusive(|&it| it == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            if !lines.is_empty() {
                let (one, two) = (random.below(lines.len()), random.below(lines.len()));
                let mut lines = lines;
                lines.swap(one, two);
                *text = lines.concat();
            }
        }
        _ => {
            // Another number in the place of the next one.
            let from = (at..text.len()).find(|&at| text[at].is_ascii_digit());
            if let Some(from) = from {
                let is_number = |byte: &u8| byte.is_ascii_alphanumeric() || b".-+".contains(byte);
                let length = text[from..]
                    .iter()
                    .take_while(|byte| is_number(byte))
                    .count();
                let number = random.one_of(NUMBERS).as_bytes().to_vec();
                drop(text.splice(from..from + length, number));
            }
        }
    }
}

/// A text with up to four changes.
pub(super) fn mutated(texts: &[String], random: &mut Random) -> Vec<u8> {
    let mut text = texts[random.below(texts.len())].clone().into_bytes();
    for _ in 0..random.below(5) {
        change(&mut text, texts, random);
    }
    text
}
