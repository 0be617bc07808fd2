//! What messages of all stages share: enums whose variants have a fixed code, as messages print it and documentation lists
//! it, and how bad a message is.

/// Defines a public enum of codes: `Name, method: variants`, where the method gives the code.
macro_rules! coded_enum {
    ($(#[doc = $about:literal])+ $name:ident, $(#[doc = $what:literal])+ $method:ident;
     $($(#[doc = $doc:literal])+ $variant:ident = $text:literal,)*) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[doc = $doc])+ $variant,)* }

        impl $name {
            /// Every one, in the order of the codes.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            $(#[doc = $what])+
            pub fn $method(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

/// How bad what a message tells is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Severity {
    /// The kernel does not compile.
    Error,
    /// It compiles, perhaps not to what was meant.
    Warning,
    /// The kernel asked for it to be said.
    Note,
}
