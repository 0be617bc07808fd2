//! Why a kernel is refused. Every stage reports in these terms, so they stand below all of them.

use std::any::Any;

use crate::settings::{SettingsError, Target};
use crate::verify::VerifierErrors;

/// Why a kernel cannot be compiled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The kernel breaks rules of the IR.
    #[error("{0}")]
    Invalid(VerifierErrors),
    /// The target or the options are not possible.
    #[error(transparent)]
    Settings(SettingsError),
    /// The kernel's parameters take more room than PTX has for them.
    #[error(
        "the kernel's parameters take {needed} bytes, PTX has room for {limit}; pass fewer, or a pointer to them"
    )]
    Parameters {
        /// Bytes of all parameters, aligned.
        needed: u32,
        /// Bytes there may be.
        limit: u32,
    },
    /// The kernel needs more shared memory than the target has.
    #[error(
        "the kernel needs {needed} bytes of shared memory, {target} has {limit}: {uses}; {advice}"
    )]
    SharedMemory {
        /// Bytes the kernel needs.
        needed: u32,
        /// Bytes a CTA may have.
        limit: u32,
        /// The target.
        target: Target,
        /// What takes most of it where most is taken, the largest first.
        uses: String,
        /// What to change.
        advice: String,
    },
    /// The compiler has no code for an operation on the target.
    #[error("{what} has no form on {target}{}", place(*.line))]
    Unsupported {
        /// The operation with its types.
        what: String,
        /// The target.
        target: Target,
        /// Line of the source it comes from, if the kernel says so.
        line: Option<u32>,
    },
    /// A block is too large for the threads that hold it.
    #[error(
        "{what} gives each thread {elements} elements, more than {limit}; use more warps or smaller blocks, together by a factor of {factor}{tf32}{}",
        place(*.line), factor = elements.div_ceil(*limit).next_power_of_two(), tf32 = by_unit(*.tf32)
    )]
    Elements {
        /// The operation that makes the block, with its type.
        what: String,
        /// Elements that one thread holds.
        elements: u32,
        /// Elements that a thread may hold.
        limit: u32,
        /// Whether it belongs to a product in f32 for which the target has a unit with fewer bits.
        tf32: bool,
        /// Line of the source it comes from, if the kernel says so.
        line: Option<u32>,
    },
    /// What one thread does is too long.
    #[error(
        "the kernel takes more than {limit} operations of each thread, most of them for {what} with {elements} elements for each \
         thread; use more warps or smaller blocks{tf32}{}", place(*.line), tf32 = by_unit(*.tf32)
    )]
    Operations {
        /// The operation that takes most of them, with its type.
        what: String,
        /// Elements that one thread holds of it.
        elements: u32,
        /// Operations there may be.
        limit: u32,
        /// Whether it belongs to a product in f32 for which the target has a unit with fewer bits.
        tf32: bool,
        /// Line of the source it comes from, if the kernel says so.
        line: Option<u32>,
    },
    /// A bug of ours: a pass broke the kernel or met something it does not expect.
    #[error("internal error in {pass}: {message}")]
    Internal {
        /// The pass.
        pass: &'static str,
        /// What happened.
        message: String,
    },
}

/// What else helps a product in f32.
fn by_unit(is_helped: bool) -> &'static str {
    match is_helped {
        true => ", or `input_precision=\"tf32\"`, for which the target has a unit",
        false => "",
    }
}

/// A line at the end of a message.
fn place(line: Option<u32>) -> String {
    line.map_or(String::new(), |line| format!(" (line {line})"))
}

impl CompileError {
    /// Line of the source that the error is about, if it is about one and the kernel says so.
    pub fn line(&self) -> Option<u32> {
        match self {
            CompileError::Unsupported { line, .. }
            | CompileError::Elements { line, .. }
            | CompileError::Operations { line, .. } => *line,
            CompileError::Invalid(_)
            | CompileError::Settings(_)
            | CompileError::Parameters { .. }
            | CompileError::SharedMemory { .. }
            | CompileError::Internal { .. } => None,
        }
    }
}

/// What a panic says.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_panic_says_is_kept() {
        let said = |panic: Box<dyn Any + Send>| panic_text(&*panic);
        assert_eq!(said(Box::new("no such layout")), "no such layout");
        assert_eq!(said(Box::new("layout 7".to_owned())), "layout 7");
        assert_eq!(said(Box::new(7)), "a panic");
    }

    #[test]
    fn errors_about_a_line_say_which() {
        let error = CompileError::Unsupported {
            what: "`dot`".into(),
            target: Target::SM_70,
            line: Some(12),
        };
        assert_eq!(error.line(), Some(12));
        let error = CompileError::Internal {
            pass: "schedule",
            message: "no".into(),
        };
        assert_eq!(error.line(), None);
    }
}
