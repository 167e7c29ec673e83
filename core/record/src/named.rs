//! Enums whose values have a name each.

/// An enum, and the name of each of its values beside it: `ALL` of them, and `name`.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $vis:vis enum $enum:ident {
        $($(#[$doc:meta])* $value:ident = $name:literal,)+
    }) => {
        $(#[$about])*
        $vis enum $enum {
            $($(#[$doc])* $value,)+
        }

        impl $enum {
            /// All of them, in this order.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Its name.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }
    };
}
