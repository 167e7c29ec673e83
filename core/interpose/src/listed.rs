//! Enums that know all they can be, and the names of that.

/// An enum, and the list of all it can be.
#[macro_export]
macro_rules! listed {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $variant:ident $(= $code:path)?,)+
    }) => {
        $(#[$about])*
        pub enum $name { $($(#[$doc])* $variant $(= $code)?,)+ }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];
        }
    };
    // The same, each with its name.
    (
        $(#[$about:meta])* pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident $(= $code:path)? => $text:literal,)+
        }
    ) => {
        $crate::listed! { $(#[$about])* pub enum $name { $($(#[$doc])* $variant $(= $code)?,)+ } }

        impl $name {
            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The one of a name.
            pub fn named(name: &[u8]) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name().as_bytes() == name)
            }
        }
    };
}
