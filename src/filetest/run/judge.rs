//! What others leave against what the reference leaves: bit for bit first, and where that fails within the bounds of ops.

use super::against_reference::{Line, compare_printed};
use super::compare::{Bound, Mismatch, compare_buffers, open_and_other, unbounded, undefined};
use super::exec::{ArgValue, At, Contents, Finished, Job};
use super::interpreter::{self, Stated};
use super::parse_line::Expect;
use super::summary::Summary;
use super::{place_of, stated};
use crate::interp::{Cause, InterpErrorKind, Open};
use crate::ir::ops::TileOp;
use crate::text::parse::Pos;
use crate::text::quote::quoted;

/// A place and a message.
type Complaint = (Pos, String);

/// Holds what others leave against the reference of a line.
pub(super) struct Judge<'j> {
    line: &'j Line<'j>,
    job: Job<'j>,
    bounds: &'j [Bound],
    reference: &'j Finished,
    /// What follows from the ops, or why nothing does. It is found when something differs or is not defined, which is seldom, at the
    /// price of another run.
    known: Option<Result<Stated, String>>,
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
        let reference = self.reference;
        if let Expect::Values(_, texts) = expect
            && reference.undefined.is_some()
        {
            let place = place_of(self.line.note, name);
            self.check_defined(name, texts)
                .map_err(|message| (place, message))?;
        }
        let stated = Finished {
            buffers,
            // It says nothing about what was printed.
            printed: None,
            variant: String::new(),
            undefined: None,
        };
        let is_same = self.compare(&stated, reference)?;
        if !is_same && matches!(expect, Expect::Values(..)) {
            let place = place_of(self.line.note, name);
            self.check_bounded(name, &stated)
                .map_err(|message| (place, message))?;
        }
        Ok(is_same)
    }

    /// An error for other numbers than the reference has where no bound says whether they are right.
    fn check_bounded(&self, name: &str, stated: &Finished) -> Result<(), String> {
        let index = self.job.args.iter().position(|arg| arg.name == name);
        let (Some(Ok(known)), Some(index)) = (&self.known, index) else {
            return Ok(());
        };
        let distances = &known.distances[index];
        let buffers = [&stated.buffers[index], &self.reference.buffers[index]];
        let (ArgValue::Buffer { scalar, .. }, [Some(stated), Some(found)], Bound::Stated) =
            (&self.job.args[index].it, buffers, self.bounds[index])
        else {
            return Ok(());
        };
        let Some((first, count)) = open_and_other(*scalar, distances, stated, found) else {
            return Ok(());
        };
        let cause = distances.get(&first).and_then(|distance| distance.cause);
        let because = self.because(cause);
        Err(format!(
            "`{}`: {count} elements are other numbers and have no bound; the first is [{first}]{because}: state `any` in their place, or \
             `expect {} within BOUND`",
            quoted(name),
            quoted(name)
        ))
    }

    /// An error for numbers that are stated where none is right.
    fn check_defined(&mut self, name: &str, texts: &[String]) -> Result<(), String> {
        let index = self.job.args.iter().position(|arg| arg.name == name);
        let (Ok(known), Some(index)) = (self.known(), index) else {
            return Ok(());
        };
        let distances = &known.distances[index];
        let Some((first, count)) = stated::undefined(texts, distances) else {
            return Ok(());
        };
        let cause = distances.get(&first).and_then(|distance| distance.cause);
        let because = self.because(cause);
        Err(format!(
            "`{}`: {count} elements are stated that are not defined; the first is [{first}]{because}: state `any` in their place",
            quoted(name)
        ))
    }

    fn known(&mut self) -> &Result<Stated, String> {
        let (job, line) = (&self.job, self.line);
        self.known.get_or_insert_with(|| {
            interpreter::stated(job).map_err(|error| match error.kind {
                InterpErrorKind::Undecided => {
                    let (pos, _) = line.place(error.place.inst.map(|(inst, _)| At::Inst(inst)));
                    format!(
                        "no bounds follow from the ops, as what line {} executes or accesses depends on a value that they leave \
                         open: state `expect NAME within BOUND`",
                        pos.line
                    )
                }
                kind => format!("no bounds follow from the ops: {kind}"),
            })
        })
    }

    fn compare(&mut self, expected: &Finished, found: &Finished) -> Result<bool, Complaint> {
        let Err((pos, message, _)) = self.differ(None, expected, found) else {
            return Ok(true);
        };
        let by_ops = self.bounds.contains(&Bound::Stated);
        if let Err(why) = self.known() {
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
