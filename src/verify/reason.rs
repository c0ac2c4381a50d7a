//! Why a certificate is rejected.

use std::fmt;

/// Something in a document that is not as it has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Where in the document, such as `combinations.balance[3]`.
    pub place: String,
    /// What is wrong with it.
    pub cause: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.place, self.cause)
    }
}

/// The first reasons, and how many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reasons {
    list: Vec<Reason>,
    count: usize,
}

impl Reasons {
    /// Reasons that are kept; more say nothing new.
    const MOST: usize = 10;

    /// The first reasons, in order.
    #[must_use]
    pub fn list(&self) -> &[Reason] {
        &self.list
    }

    /// How many there are in all.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a reason.
    pub(super) fn add(&mut self, place: impl Into<String>, cause: impl Into<String>) {
        self.count += 1;
        if self.list.len() < Self::MOST {
            self.list.push(Reason {
                place: place.into(),
                cause: cause.into(),
            });
        }
    }

    /// Adds a reason if what is stated is not what was recomputed.
    pub(super) fn compare<T: PartialEq + fmt::Debug>(
        &mut self,
        place: &str,
        stated: &T,
        recomputed: &T,
    ) {
        if stated != recomputed {
            let cause = format!("is {stated:?}, recomputed {recomputed:?}");
            self.add(place, cause);
        }
    }

    /// Compares two lists: a reason for each entry that differs, and one for the length.
    pub(super) fn compare_lists<T: PartialEq + fmt::Debug>(
        &mut self,
        place: &str,
        stated: &[T],
        recomputed: &[T],
    ) {
        if stated.len() != recomputed.len() {
            let (stated, recomputed) = (stated.len(), recomputed.len());
            self.add(
                place,
                format!("has {stated} entries, recomputed {recomputed}"),
            );
        }
        for (index, (stated, recomputed)) in stated.iter().zip(recomputed).enumerate() {
            if stated != recomputed {
                self.compare(&format!("{place}[{index}]"), stated, recomputed);
                if self.list.len() == Self::MOST {
                    break;
                }
            }
        }
    }
}
