//! How faults without fields are declared.

/// Declares an enum of faults, with the list of all of them.
macro_rules! faults {
    ($(#[$meta:meta])* pub enum $name:ident { $( #[doc = $doc:literal] $fault:ident, )+ }) => {
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
        $(#[$meta])*
        pub enum $name {
            $( #[doc = $doc] $fault, )+
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$( Self::$fault ),+];
        }
    };
}
