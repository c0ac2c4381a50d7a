//! The macro that declares a struct and the figures among its fields.

/// Declares a struct: first fields that are no figures, then its figures with their terms. `in` is
/// the section of a cluster file that has them, with a final point; `at` is where the struct lives.
/// A key that is not the field's name follows it with `as`.
macro_rules! figures {
    (
        $(#[doc = $doc:literal])+
        #[derive($($derived:ident),+)]
        pub struct $name:ident in $section:literal at $owner:ident$(.$place:ident)* {
            $($(#[$other_doc:meta])+ $other:ident: $other_type:ty,)*
        }
        figures {
            $($(#[doc = $figure_doc:literal])+ $field:ident $(as $key:literal)?: $type:ty = $terms:expr;)+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive($($derived),+)]
        pub struct $name {
            $($(#[$other_doc])+ pub $other: $other_type,)*
            $($(#[doc = $figure_doc])+ pub $field: $type,)+
        }

        impl $crate::figures::Group for $name {
            const DOC: &'static str = concat!($($doc),+).trim_ascii();
            const FIGURES: &'static [$crate::figures::Figure] = &[$(
                $crate::figures::Figure {
                    key: $crate::figures::table::key!($section $field $($key)?),
                    doc: concat!($($figure_doc),+).trim_ascii(),
                    kind: <$type as $crate::figures::Figured>::KIND,
                    terms: $terms,
                    get: |owners| $crate::figures::Figured::value(Self::of(owners).$field),
                    set: |owners, value| {
                        if let Some(value) = $crate::figures::Figured::of(value) {
                            Self::of_mut(owners).$field = value;
                        }
                    },
                },
            )+];

            fn of(owners: $crate::figures::Owners<'_>) -> &Self {
                &(*owners.$owner)$(.$place)*
            }

            fn of_mut(owners: $crate::figures::OwnersMut<'_>) -> &mut Self {
                &mut (*owners.$owner)$(.$place)*
            }
        }
    };
}

/// The key of a figure: what is stated, else the field's name.
macro_rules! key {
    ($section:literal $field:ident) => {
        concat!($section, stringify!($field))
    };
    ($section:literal $field:ident $key:literal) => {
        concat!($section, $key)
    };
}

pub(super) use {figures, key};
