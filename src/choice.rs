//! Enums whose variants have names in files and output.

/// An enum whose variants have names in files.
pub trait Choice: Copy + 'static {
    /// What it is a choice of, with its article.
    const NOUN: &'static str;
    /// The names, in the order of the variants.
    const NAMES: &'static [&'static str];

    /// The variant's name.
    fn name(self) -> &'static str;
    /// The variant of this name.
    fn of_name(name: &str) -> Option<Self>;
}

/// Declares an enum with the spelling of its variants in files and output; the first variant is the
/// default. With a noun it is a [`Choice`] of files.
macro_rules! choice {
    (
        $(#[$doc:meta])*
        $name:ident $(, $noun:literal)? {
            $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[schemars(inline)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every variant, in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The spellings, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// The spelling in files and output.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The variant spelled `text`.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|variant| variant.as_str() == text)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::ALL[0]
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        $(impl $crate::choice::Choice for $name {
            const NOUN: &'static str = $noun;
            const NAMES: &'static [&'static str] = Self::NAMES;
            fn name(self) -> &'static str {
                self.as_str()
            }
            fn of_name(name: &str) -> Option<Self> {
                Self::parse(name)
            }
        })?
    };
}
pub(crate) use choice;
