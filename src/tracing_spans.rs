//! Spans for `tracing`: what the library does, for how long, for an application's own logs and profiles.
//! The guide's page on embedding lists them.

/// Opens a span until the end of the block it stands in. Its fields are evaluated if somebody asked for it.
#[cfg(feature = "tracing")]
macro_rules! span {
    ($level:ident, $name:literal $(, $field:ident = $value:expr)*) => {
        let _span = tracing::span!(target: "tilelift", tracing::Level::$level, $name $(, $field = $value)*).entered();
    };
}

/// Nothing.
#[cfg(not(feature = "tracing"))]
macro_rules! span {
    ($($of:tt)*) => {};
}
