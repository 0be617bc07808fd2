//! The rules that every function obeys, at either level. Whatever [`verify`] accepts, the compiler turns
//! into code or into an error that names a limit of the target; it never panics on it.
//!
//! All violations are found, not the first alone, with one exception: where the structure itself is
//! broken (V01 to V05), nothing else can be looked at.
//!
//! # Structure
//! - **V01** Every index names something: blocks, instructions, values, slots and layouts.
//! - **V02** Every block stands in one place, in the body or as one region, and every instruction in one
//!   block; results and parameters know where they are defined. The entry is the first block of the body,
//!   and at tile level the only one.
//! - **V03** A block ends with a terminator and has no other.
//! - **V04** An instruction has as many blocks as its op says: one region for `for` and `reduce`, two for
//!   `while` and `if`, one target for `jump` and two for `brif`, none otherwise. Regions get no arguments.
//! - **V05** Regions are nested at most 64 deep.
//!
//! # Control flow
//! - **V06** The parameters of a region have the types its op gives them: the counter and the carried values
//!   (`for`), the carried values and the passed ones (`while`), none (`if`), twice the elements (`reduce`).
//! - **V07** A region ends in `yield` (the first of `while` in `condition`) with values of the types its op
//!   expects, the body of a kernel in `return`.
//! - **V08** A branch names blocks of the body other than the entry, with arguments for their parameters.
//!
//! # Values
//! - **V09** Operands and attributes fit the op.
//! - **V10** Results have the types that follow from the operands.
//! - **V11** A value is defined before it is used: earlier in the block or in one that encloses it, at thread
//!   level in a block that dominates the use. What cannot be reached from the entry need not obey.
//! - **V12** Of the parameters of blocks, those of regions alone may be tokens, and none is a tensor map: what is under way is
//!   passed on within a kernel, and not into it.
//!
//! # The function
//! - **V13** Parameters are scalars that a caller can pass, pointers to device memory, with one name and one
//!   set of hints each; no two have one name. `divisible` stands on integers and pointers and is a power of two.
//! - **V14** The number of warps is a power of two, 1 to 32; the first partition starts at warp 0 and has the
//!   program's warps, those of two groups if it is persistent and they take turns. The second one, if there is one, is a power of
//!   two of warps behind these, 32 with them at most.
//!   Budgets of registers take no more than all warps begin with, else a group would wait for ever.
//! - **V15** The name is an identifier of PTX that is not taken there.
//! - **V16** A slot has a size of at most 16 MiB, those that hold blocks of at most 1 GiB together, its alignment is a power of two up
//!   to 1024, and its offset a multiple of it.
//! - **V23** The recipe of a tensor map describes one that exists, and reads parameters of the function: a pointer to the
//!   map's elements as its base, and integers.
//!
//! # Layouts
//! - **V17** Either every block value has a layout or none has; a scalar has none.
//! - **V18** A layout is for the value's shape and spreads every element over 32 lanes and the function's warps.
//! - **V19** Where an op keeps elements in their threads, layouts agree: the operand of `expand_dims`,
//!   `broadcast`, `reshape`, `permute`, `join` and `split` and the result of `reduce` follow from the other side but for the numbering of registers.
//!
//! # Single ops
//! - **V20** The region of a `reduce` or `scan` holds pure ops on scalars that exist at both levels, or functions made of such.
//! - **V21** A `barrier` has an id below 16 and waits for a multiple of 32 threads, no more than the function's.
//! - **V22** What a product in flight adds to is only carried by `for`, from the first iteration on, added to by `dot_start` and waited
//!   for by `dot_sum`. A block in shared memory comes from `shared_view`, is turned by `permute` and multiplied by `dot_start`.
//! - **V24** A kernel whose second partition has warps for it starts one `producer` at most, outside of regions. One thread executes
//!   it: scalars that pure ops make, `for` and `if`, copies of boxes, announcements and waits at barriers, and `device_assert`.
//! - **V25** The body of a persistent kernel has no `program_id`; `cta_id` and `num_ctas` stand nowhere else.
//! - **V26** What is read of a ring has arrived, and is filled again only when it was read: see `verify_rings`. It is checked of what the
//!   compiler schedules alone ([`verify_rings`]), as that takes executions: fewer where passes are not verified, and then of kernels with roles
//!   ([`Options::verify_passes`](crate::settings::Options::verify_passes)).

mod dots;
mod function;
mod layouts;
mod regions;
mod rings;
mod roles;
mod ssa;
mod structure;
mod types;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::ir::entities::AnyEntity;
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::text::print::{Notes, Numbering, print_with};

#[cfg(feature = "triton")]
pub(crate) use function::is_ptx_identifier;
#[cfg(feature = "triton")]
pub(crate) use regions::combines;
#[cfg(feature = "tool")]
pub(crate) use rings::timeline;
pub use rings::verify_rings;
pub(crate) use rings::verify_roles;

coded_enum! {
    /// A rule of the [module](self)'s list.
    Rule,
    /// Its number in the list.
    code;

    /// Indices name something.
    Index = "V01",
    /// Everything stands in one place.
    Place = "V02",
    /// Blocks end with their only terminator.
    Terminator = "V03",
    /// Number of regions or targets.
    Blocks = "V04",
    /// Depth of nesting.
    Nesting = "V05",
    /// Parameters of regions.
    RegionParams = "V06",
    /// Ends of regions.
    RegionEnd = "V07",
    /// Branches.
    Branch = "V08",
    /// Operands and attributes.
    Operands = "V09",
    /// Result types.
    Results = "V10",
    /// Definitions before uses.
    Dominance = "V11",
    /// Parameters that are tokens or tensor maps.
    Token = "V12",
    /// Parameters of the function.
    Params = "V13",
    /// Warps and partitions.
    Warps = "V14",
    /// The function's name.
    Name = "V15",
    /// Slots.
    Slot = "V16",
    /// Layouts on all blocks or on none.
    LayoutsEverywhere = "V17",
    /// Layouts fit their values.
    LayoutFits = "V18",
    /// Layouts fit each other.
    LayoutsAgree = "V19",
    /// Regions of reductions.
    Reduce = "V20",
    /// Barriers.
    Barrier = "V21",
    /// Products in flight and what they read.
    Products = "V22",
    /// Tensor maps.
    Maps = "V23",
    /// The producer.
    Producer = "V24",
    /// Programs and CTAs.
    Persistent = "V25",
    /// What stands in rings, and when.
    Rings = "V26",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {entity}: {message}")]
pub struct VerifierError {
    /// The rule.
    pub rule: Rule,
    /// What breaks it.
    pub entity: AnyEntity,
    /// How.
    pub message: String,
}

/// Every violation in a function, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierErrors(pub Vec<VerifierError>);

impl fmt::Display for VerifierErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for VerifierErrors {}

impl Notes for VerifierErrors {
    fn notes(&self, at: AnyEntity) -> Vec<String> {
        let here = self.0.iter().filter(|e| e.entity == at);
        here.map(|e| format!("error: {}: {}", e.rule, e.message))
            .collect()
    }
}

/// The text of a function with its violations under the guilty lines.
pub fn show<L: Level>(func: &Function<L>, errors: &VerifierErrors) -> String {
    print_with(func, Numbering::Own, errors)
}

/// Checks every rule.
pub fn verify<L: Level>(func: &Function<L>) -> Result<(), VerifierErrors> {
    let mut errors = Errors(Vec::new());
    if let Some(tree) = structure::check(func, &mut errors) {
        regions::check(func, &mut errors);
        types::check(func, &mut errors);
        ssa::check(func, &tree, &mut errors);
        dots::check(func, &mut errors);
        roles::check(func, &mut errors);
        function::check_programs(func, &mut errors);
        layouts::check(func, &mut errors);
    }
    function::check(func, &mut errors);
    if errors.0.is_empty() {
        return Ok(());
    }
    Err(VerifierErrors(errors.0))
}

/// The violations found so far.
struct Errors(Vec<VerifierError>);

impl Errors {
    fn report(&mut self, rule: Rule, entity: impl Into<AnyEntity>, message: impl Into<String>) {
        self.0.push(VerifierError {
            rule,
            entity: entity.into(),
            message: message.into(),
        });
    }
}

/// Types as a list for messages.
fn type_list<T: fmt::Display>(types: &[T]) -> String {
    if types.is_empty() {
        return "nothing".to_owned();
    }
    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
    types.join(", ")
}
