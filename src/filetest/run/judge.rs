//! What others leave against what the reference leaves: bit for bit first, and where that fails within the bounds of ops.

use super::against_reference::{Line, SHOWN, compare_printed};
use super::compare::{
    Bound, Mismatch, compare_buffers, is_open_and_other, is_undefined, unbounded, undefined,
};
use super::exec::{ArgValue, At, Contents, Finished, Job};
use super::interpreter::{self, Stated};
use super::parse_line::Expect;
use super::summary::Summary;
use super::{place_of, stated};
use crate::interp::{Cause, Distance, InterpErrorKind, Open};
use crate::ir::ops::TileOp;
use crate::text::parse::Pos;
use crate::text::quote::{quoted, quoted_within};

/// Lines that a message shows.
const PRINTED: usize = 3;

/// A place and a message.
type Complaint = (Pos, String);

/// Why nothing follows from the ops.
struct Unknown {
    message: String,
    /// The line in which a value that is not defined decides what happens, and what that comes from.
    undefined: Option<(u32, Cause)>,
}

/// Holds what others leave against the reference of a line.
pub(super) struct Judge<'j> {
    line: &'j Line<'j>,
    job: Job<'j>,
    bounds: &'j [Bound],
    reference: &'j Finished,
    /// What follows from the ops, or why nothing does. It is found when something differs or is not defined, which is seldom, at the
    /// price of another run.
    known: Option<Result<Stated, Unknown>>,
    /// Whether elements were not compared, where no bound follows for them.
    is_open: bool,
}

impl<'j> Judge<'j> {
    pub(super) fn new(
        line: &'j Line<'j>,
        job: &Job<'j>,
        bounds: &'j [Bound],
        reference: &'j Finished,
    ) -> Judge<'j> {
        Judge {
            line,
            job: *job,
            bounds,
            reference,
            known: None,
            is_open: false,
        }
    }

    /// What an executor left; gives whether that is the same bit for bit.
    pub(super) fn executor(&mut self, found: &Finished) -> Result<bool, Complaint> {
        self.compare(self.reference, found)
    }

    /// The buffers as a line states one of them; likewise.
    pub(super) fn stated(
        &mut self,
        expect: &Expect,
        name: &str,
        buffers: Vec<Option<Contents>>,
    ) -> Result<bool, Complaint> {
        let stated = Finished {
            buffers,
            // It says nothing about what was printed.
            printed: None,
            variant: String::new(),
            undefined: None,
        };
        let reference = self.reference;
        if reference.undefined.is_some() || self.differ(None, &stated, reference).is_err() {
            let place = place_of(self.line.note, name);
            self.check_right(expect, name, &stated)
                .map_err(|message| (place, message))?;
        }
        self.compare(&stated, reference)
    }

    /// An error for numbers that are stated where none is right, and for other numbers than the reference has where no bound says
    /// whether they are right.
    fn check_right(
        &mut self,
        expect: &Expect,
        name: &str,
        stated: &Finished,
    ) -> Result<(), String> {
        let index = self.job.args.iter().position(|arg| arg.name == name);
        let Some(index) = index else {
            return Ok(());
        };
        let bound = self.bounds[index];
        let reference = self.reference;
        let name = quoted(name);
        self.check_decided(&format!("`{name}`"))?;
        let buffers = [&stated.buffers[index], &reference.buffers[index]];
        let (Some(Ok(known)), ArgValue::Buffer { scalar, .. }, [Some(stated), Some(found)]) =
            (&self.known, &self.job.args[index].it, buffers)
        else {
            return Ok(());
        };
        let distances = &known.distances[index];
        let is_wrong = |i: usize, distance: &Distance| {
            stated::is_stated(expect, i)
                && (is_undefined(distance)
                    || bound == Bound::Stated
                        && is_open_and_other(*scalar, distance, stated, found, i))
        };
        let wrong = distances.iter().filter(|&(&i, it)| is_wrong(i, it));
        let Some((first, distance)) = wrong.clone().min_by_key(|(i, _)| **i) else {
            return Ok(());
        };
        let count = wrong.count();
        let because = self.because(distance.cause);
        let any = match expect {
            Expect::File(..) => "state a list with `any` in their place",
            _ => "state `any` in their place",
        };
        let (what, advice) = match is_undefined(distance) {
            true => ("are stated that are not defined", any.to_owned()),
            false => (
                "are other numbers and have no bound",
                format!("{any}, or `expect {name} within BOUND`"),
            ),
        };
        Err(format!(
            "`{name}`: {count} elements {what}; the first is [{first}]{because}: {advice}"
        ))
    }

    /// An error for whatever is stated where what is not defined decides what happens.
    fn check_decided(&mut self, what: &str) -> Result<(), String> {
        let Err(Unknown {
            undefined: Some((line, cause)),
            ..
        }) = *self.known()
        else {
            return Ok(());
        };
        let because = self.because(Some(cause));
        Err(format!(
            "nothing that is stated of {what} is right: what line {line} executes or accesses is open{because}"
        ))
    }

    /// A line that is expected to be printed: the reference prints it, and not of a value that is not defined.
    pub(super) fn printed(&mut self, line: &str) -> Result<(), String> {
        let all = self.reference.printed.iter().flat_map(|it| &it.lines);
        let printed = all.clone().filter(|&it| it == line).count();
        if printed == 0 {
            return Err(not_printed(line, all));
        }
        if self.reference.undefined.is_none() {
            return Ok(());
        }
        let shown = quoted_within(line, SHOWN);
        self.check_decided("what is printed")?;
        let Ok(known) = self.known() else {
            return Ok(());
        };
        let undefined = known.undefined_lines.iter().filter(|(it, _)| it == line);
        let Some(&(_, cause)) = undefined.clone().next() else {
            return Ok(());
        };
        match undefined.count() < printed {
            true => Ok(()),
            false => Err(format!("`{shown}` is printed{}", self.because(Some(cause)))),
        }
    }

    fn known(&mut self) -> &Result<Stated, Unknown> {
        let (job, line) = (&self.job, self.line);
        self.known.get_or_insert_with(|| {
            interpreter::stated(job).map_err(|error| match error.kind {
                InterpErrorKind::Undecided(cause) => {
                    let (pos, _) = line.place(error.place.inst.map(|(inst, _)| At::Inst(inst)));
                    let message = format!(
                        "no bounds follow from the ops, as what line {} executes or accesses depends on a value that they leave \
                         open: state `expect NAME within BOUND`",
                        pos.line
                    );
                    let undefined = cause.filter(|cause| cause.why.is_undefined());
                    Unknown {
                        message,
                        undefined: undefined.map(|cause| (pos.line, cause)),
                    }
                }
                kind => Unknown {
                    message: format!("no bounds follow from the ops: {kind}"),
                    undefined: None,
                },
            })
        })
    }

    fn compare(&mut self, expected: &Finished, found: &Finished) -> Result<bool, Complaint> {
        let Err((pos, message, _)) = self.differ(None, expected, found) else {
            return Ok(true);
        };
        let by_ops = self.bounds.contains(&Bound::Stated);
        if let Err(Unknown { message: why, .. }) = self.known() {
            let why = match by_ops {
                true => format!("; {why}"),
                false => String::new(),
            };
            let because = self.because(self.reference.undefined);
            return Err((pos, format!("{message}{why}{because}")));
        }
        let known = self.known.as_ref().and_then(|known| known.as_ref().ok());
        let compared = self.differ(known, expected, found);
        compared.map_err(|(pos, message, cause)| (pos, message + &self.because(cause)))?;
        self.is_open = true;
        Ok(false)
    }

    /// The first difference.
    fn differ(
        &self,
        known: Option<&Stated>,
        expected: &Finished,
        found: &Finished,
    ) -> Result<(), (Pos, String, Option<Cause>)> {
        let distances = known.map(|known| &known.distances[..]);
        let note = self.line.note;
        let place = |m: Mismatch| (place_of(note, &m.name), m.to_string(), m.cause);
        let (args, bounds) = (self.job.args, self.bounds);
        compare_buffers(args, bounds, distances, &expected.buffers, &found.buffers)
            .map_err(place)?;
        let (mut expected, mut found) = (expected.printed.clone(), found.printed.clone());
        if known.is_some_and(|known| known.is_printed) && bounds.contains(&Bound::Stated) {
            // Numbers with a bound are printed with as many digits; that all is printed remains.
            for printed in [&mut expected, &mut found].into_iter().flatten() {
                printed.lines.iter_mut().for_each(String::clear);
            }
        }
        compare_printed(expected.as_ref(), found.as_ref())
            .map_err(|message| (note.pos, message, None))
    }

    /// Says which elements are not defined, and which were not compared.
    pub(super) fn finish(mut self, summary: &mut Summary) {
        if self.reference.undefined.is_some() {
            self.known();
        }
        let known = match &self.known {
            Some(Ok(known)) => known,
            Some(Err(_)) => {
                if let Some(cause) = self.reference.undefined {
                    summary.add("interpreter", self.words(cause));
                }
                return;
            }
            None => return,
        };
        let args = self.job.args.iter().zip(self.bounds);
        for ((arg, bound), distances) in args.zip(&known.distances) {
            let ArgValue::Buffer { scalar, count, .. } = &arg.it else {
                continue;
            };
            let name = quoted(&arg.name);
            let mut tell = |(open, cause): (usize, Option<Cause>), what: &str| {
                if open > 0 {
                    let because = cause.map(|cause| format!(": {}", self.words(cause)));
                    let because = because.unwrap_or_default();
                    summary.add(&name, format!("{open} of {count} elements {what}{because}"));
                }
            };
            tell(undefined(distances), "are not defined");
            if self.is_open && *bound == Bound::Stated {
                let open = unbounded(*scalar, distances);
                tell(open, "have no bound and were not compared");
            }
        }
    }

    /// What something comes from, for the end of a message.
    fn because(&self, cause: Option<Cause>) -> String {
        let Some(cause) = cause else {
            return String::new();
        };
        let words = self.words(cause);
        match cause.why.is_undefined() {
            true => format!("; {words}, and what that gives is not defined"),
            false => format!("; {words}"),
        }
    }

    /// Which instruction leaves its result open, and how.
    fn words(&self, Cause { inst, why }: Cause) -> String {
        let op = self.job.func.dfg.insts[inst].op;
        let (pos, _) = self.line.place(Some(At::Inst(inst)));
        let line = match pos.line {
            // It stands in no line that anybody wrote.
            0 => format!("a `{op}`"),
            line => format!("line {line}"),
        };
        let combines = match op {
            TileOp::Scan => "scans with a function that is not associative",
            _ => {
                "reduces with a function that is not associative or depends on which operand is which"
            }
        };
        match why {
            Open::ByZero => format!("{line} divides an integer by zero"),
            Open::Overflow => format!("{line} divides the least integer by -1"),
            Open::Order => format!("{line} {combines}, so that the order of the elements shows"),
            Open::Extremes => {
                format!("{line} has partial results beyond the range of their type in some orders")
            }
            Open::Unfollowed => {
                format!("{line} makes of what has a bound something that has none (`{op}`)")
            }
        }
    }
}

/// What to say where a line is not printed: those that are, the nearest first.
fn not_printed<'l>(line: &str, all: impl Iterator<Item = &'l String>) -> String {
    let mut lines: Vec<&String> = all.collect();
    let count = lines.len();
    lines.sort_by_key(|it| !it.contains(line));
    lines.dedup();
    let more = match lines.len() {
        0..=PRINTED => String::new(),
        _ => format!(" and others, {count} in all"),
    };
    let shown = lines.iter().take(PRINTED);
    let shown: Vec<String> = shown
        .map(|it| format!("`{}`", quoted_within(it, SHOWN)))
        .collect();
    let instead = match shown.is_empty() {
        true => "it prints nothing".to_owned(),
        false => format!("it prints {}{more}", shown.join(", ")),
    };
    format!(
        "interpreter does not print the line `{}`; {instead}",
        quoted_within(line, SHOWN)
    )
}
