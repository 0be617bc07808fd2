//! What a subscriber of `tracing` hears.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tilelift::runtime::{Buffer, Device, Program};
use tilelift::tune::{Config, Tuner};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::tools::{ADD, emulator};

/// Writes down the spans as they are entered, with the one they stand in and the field `kernel`.
struct Listener {
    level: LevelFilter,
    heard: Arc<Mutex<Heard>>,
    next: AtomicU64,
}

#[derive(Default)]
struct Heard {
    /// By number: what is written of a span.
    names: Vec<String>,
    open: Vec<String>,
    entered: Vec<String>,
}

/// The value of the field `kernel`.
struct Kernel(Option<String>);

impl Visit for Kernel {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "kernel" {
            self.0 = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tilelift" && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut kernel = Kernel(None);
        span.record(&mut kernel);
        let name = span.metadata().name();
        let name = kernel
            .0
            .map_or(name.to_owned(), |of| format!("{name} {of}"));
        let mut heard = self.heard.lock().expect("nobody panicked");
        heard.names.push(name);
        Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn enter(&self, span: &Id) {
        let mut heard = self.heard.lock().expect("nobody panicked");
        let name = heard.names[span.into_u64() as usize - 1].clone();
        let place = match heard.open.last() {
            Some(outer) => format!("{outer} > {name}"),
            None => name,
        };
        heard.open.push(place.clone());
        heard.entered.push(place);
    }

    fn exit(&self, _: &Id) {
        self.heard.lock().expect("nobody panicked").open.pop();
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
}

/// The spans of `what`, each once, in the order of their first time.
fn heard(level: LevelFilter, what: impl FnOnce()) -> Vec<String> {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let listener = Listener {
        level,
        heard: heard.clone(),
        next: AtomicU64::new(1),
    };
    tracing::subscriber::with_default(listener, what);
    let heard = heard.lock().expect("nobody panicked");
    assert_eq!(heard.open, [""; 0], "what is entered is left");
    let mut entered: Vec<String> = Vec::new();
    for name in &heard.entered {
        if !entered.contains(name) {
            entered.push(name.clone());
        }
    }
    entered
}

fn launch(device: &Device) {
    let program = Program::python("add.py", ADD).expect("it is Python");
    let add = device.kernel(&program, "add");
    let add = add.and_then(|kernel| kernel.constant("BLOCK", 32));
    let x = Buffer::from_slice(device, &[0.0_f32; 32]).expect("there is memory");
    for _ in 0..2 {
        let kernel = add.as_ref().expect("there is a kernel");
        kernel.run(1, (&x, &x, &x, 32)).expect("it runs");
    }
}

#[test]
fn what_a_first_launch_does_is_told_and_where_it_stands() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let cold = heard(LevelFilter::TRACE, || launch(&emulator(Some(dir.path()))));
    assert_eq!(
        cold,
        [
            "parse",
            "launch add",
            "launch add > cache_lookup",
            "launch add > lower add",
            "launch add > compile add",
            "launch add > compile add > tile",
            "launch add > compile add > expand",
            "launch add > compile add > order",
            "launch add > compile add > machine",
            "launch add > cache_store",
            "launch add > assemble add",
        ]
    );
    let warm = heard(LevelFilter::TRACE, || launch(&emulator(Some(dir.path()))));
    let expected = [
        "parse",
        "launch add",
        "launch add > cache_lookup",
        "launch add > assemble add",
    ];
    assert_eq!(warm, expected);
    // What every launch says is said at the finest level alone.
    let coarse = heard(LevelFilter::DEBUG, || launch(&emulator(Some(dir.path()))));
    assert_eq!(coarse, ["parse", "cache_lookup", "assemble add"]);
}

#[test]
fn a_search_for_a_configuration_is_told() {
    let spans = heard(LevelFilter::DEBUG, || {
        let device = emulator(None);
        let program = Program::python("add.py", ADD).expect("it is Python");
        let add = device.kernel(&program, "add").expect("there is a kernel");
        let x = Buffer::from_slice(&device, &[0.0_f32; 32]).expect("there is memory");
        let configs = [16, 32].map(|block| Config::new().constant("BLOCK", block));
        Tuner::new(configs)
            .tune(&add, &device.stream(), 2, (&x, &x, &x, 32))
            .expect("both work");
    });
    for span in ["parse", "tune add"] {
        assert!(spans.iter().any(|heard| heard == span), "{spans:?}");
    }
}
