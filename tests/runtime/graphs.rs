//! Graphs on the emulator: the driver's rules.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilelift::runtime::{Buffer, Device, Event, Graph, Kernel, Program, RuntimeError, Stream};

use crate::tools::emulator;

/// Adds one.
const STEP: &str = r#"
import triton
import triton.language as tl

@triton.jit
def step(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i) + 1)
"#;

/// The kernel, and numbers of zero.
fn setup(device: &Device) -> (Kernel, Buffer<i32>) {
    let program = Program::python("step.py", STEP).expect("it is Python");
    let kernel = device.kernel(&program, "step").expect("there is a kernel");
    let x = Buffer::from_slice(device, &[0_i32; 64]).expect("there is memory");
    (kernel, x)
}

fn value(x: &Buffer<i32>) -> i32 {
    x.read(&x.device().stream()).expect("it can be read")[0]
}

/// That something has no place in a recording.
fn is_refused<T>(result: &Result<T, RuntimeError>) -> bool {
    matches!(result, Err(RuntimeError::Recording { .. }))
}

#[test]
fn fills_and_other_handles_of_the_stream_are_recorded() {
    let device = emulator(None);
    let (step, x) = setup(&device);
    let stream = device.stream();
    let graph = Graph::capture(&stream, |stream| {
        x.fill(stream, 0)?;
        step.launch(stream, 1, (&x,))?;
        // The same stream under another name.
        step.launch(&device.stream(), 1, (&x,))
    });
    let graph = graph.expect("it is recorded");
    assert_eq!(value(&x), 0, "nothing ran");
    step.run(1, (&x,)).expect("it runs");
    for _ in 0..3 {
        graph.launch(&stream).expect("it runs");
        assert_eq!(value(&x), 2);
    }
    // A graph within a graph, and another stream, which is not recorded.
    let other = Stream::new(&device).expect("there is memory");
    let outer = Graph::capture(&stream, |stream| {
        step.launch(&other, 1, (&x,))?;
        graph.launch(stream)?;
        step.launch(stream, 1, (&x,))
    });
    let outer = outer.expect("it is recorded");
    assert_eq!(value(&x), 3);
    outer.launch(&other).expect("it runs");
    assert_eq!(value(&x), 3);
}

#[test]
fn what_waits_spoils_a_recording() {
    let device = emulator(None);
    let (step, x) = setup(&device);
    let stream = device.stream();
    let event = Event::new(&device).expect("an event");
    type Body<'a> = &'a dyn Fn(&Stream) -> bool;
    let bodies: [(&str, Body<'_>); 6] = [
        ("reading", &|stream| is_refused(&x.read(stream))),
        ("writing", &|stream| is_refused(&x.write(stream, &[1; 64]))),
        ("waiting", &|stream| is_refused(&stream.synchronize())),
        ("asking", &|stream| is_refused(&stream.is_done())),
        ("running", &|_| is_refused(&step.run(1, (&x,)))),
        ("recording", &|stream| {
            is_refused(&Graph::capture(stream, |_| Ok::<_, RuntimeError>(())))
        }),
    ];
    for (what, body) in bodies {
        // The body goes on as if nothing were wrong.
        let graph = Graph::capture(&stream, |stream| {
            step.launch(stream, 1, (&x,))?;
            assert!(body(stream), "{what}");
            Ok::<_, RuntimeError>(())
        });
        assert!(is_refused(&graph), "{what}");
        assert_eq!(value(&x), 0, "nothing ran");
    }
    // An event is part of the recording, and has no time.
    let graph = Graph::capture(&stream, |stream| event.record(stream));
    assert!(graph.is_ok());
    assert_eq!(event.elapsed_ms(&event), Err(RuntimeError::NotRecorded));
    assert!(is_refused(&event.synchronize()));
    event.record(&stream).expect("no graph records it");
    assert_eq!(event.synchronize(), Ok(()));
    // That each launch is waited for is no reason: it does not run yet.
    device.set_blocking(true);
    let graph = Graph::capture(&stream, |stream| step.launch(stream, 1, (&x,)));
    graph
        .and_then(|graph| graph.launch(&stream))
        .expect("it runs");
    assert_eq!(value(&x), 1);
}

#[test]
fn other_threads_make_buffers_while_one_records() {
    let device = emulator(None);
    let (step, x) = setup(&device);
    let stream = device.stream();
    let graph = Graph::capture(&stream, |stream| {
        let made = std::thread::scope(|scope| {
            let made = scope.spawn(|| Buffer::from_slice(&device, &[7_i32]));
            made.join().expect("it does not panic")
        })?;
        let other = Stream::new(&device)?;
        assert_eq!(made.read(&other), Ok(vec![7]));
        step.launch(stream, 1, (&x,))
    });
    let graph = graph.expect("it is recorded");
    graph.launch(&stream).expect("it runs");
    assert_eq!(value(&x), 1);
    // Who records has to wait, as on a GPU.
    let graph = Graph::capture(&stream, |_| {
        assert!(is_refused(&Buffer::from_slice(&device, &[7_i32])));
        Ok::<_, RuntimeError>(())
    });
    assert!(is_refused(&graph));
}

#[test]
fn a_recording_ends_with_its_body() {
    let device = emulator(None);
    let (step, x) = setup(&device);
    let stream = device.stream();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        Graph::capture(&stream, |stream| -> Result<(), RuntimeError> {
            step.launch(stream, 1, (&x,))?;
            panic!("a mistake of the application")
        })
        .map(drop)
    }));
    assert!(unwound.is_err());
    step.run(1, (&x,)).expect("it runs");
    assert_eq!(value(&x), 1);
    let failed = Graph::capture(&stream, |stream| {
        step.launch(stream, 1, (&x,))?;
        Err(RuntimeError::NotRecorded)
    });
    assert_eq!(failed.map(drop), Err(RuntimeError::NotRecorded));
    step.run(1, (&x,)).expect("it runs");
    assert_eq!(value(&x), 2);
    // What a graph's memory was may be gone when it runs.
    let graph = {
        let gone = Buffer::from_slice(&device, &[0_i32; 64]).expect("there is memory");
        Graph::capture(&stream, |stream| step.launch(stream, 1, (&gone,)))
    };
    let error = graph.and_then(|graph| graph.launch(&stream));
    assert!(
        matches!(error, Err(RuntimeError::Emulator { .. })),
        "{error:?}"
    );
}

/// Adds one by way of memory that nobody has afterwards.
fn step_by_way(step: &Kernel, stream: &Stream, x: &Buffer<i32>) -> Result<(), RuntimeError> {
    let way = Buffer::<i32>::new(x.device(), 64)?;
    way.copy_from(stream, x)?;
    step.launch(stream, 1, (&way,))?;
    x.copy_from(stream, &way)
}

#[test]
fn a_graph_keeps_what_is_dropped_while_it_is_recorded() {
    let device = emulator(None);
    let (step, x) = setup(&device);
    let stream = device.stream();
    let graph = Graph::capture(&stream, |stream| step_by_way(&step, stream, &x));
    let graph = graph.expect("it is recorded");
    // Who needs memory gets other.
    let filled = Buffer::from_slice(&device, &[7_i32; 64]).expect("there is memory");
    for runs in 1..=3 {
        graph.launch(&stream).expect("it runs");
        assert_eq!((value(&x), value(&filled)), (runs, 7));
    }
    // One recording in another: each keeps its own.
    let other = Stream::new(&device).expect("a stream");
    let mut inner = None;
    let outer = Graph::capture(&stream, |stream| {
        step_by_way(&step, stream, &x)?;
        inner = Some(Graph::capture(&other, |other| {
            step_by_way(&step, other, &x)
        })?);
        step_by_way(&step, stream, &x)
    });
    let (outer, inner) = (outer.expect("it is recorded"), inner.expect("so is this"));
    outer.launch(&stream).expect("it runs");
    assert_eq!(value(&x), 5);
    drop(outer);
    inner.launch(&stream).expect("it runs");
    assert_eq!(value(&x), 6);
}

#[test]
fn a_graph_keeps_what_graphs_keep_that_are_recorded_in_it() {
    let device = emulator(None);
    let (step, x) = setup(&device);
    let [stream, other] = [(); 2].map(|()| Stream::new(&device).expect("a stream"));
    // A graph that is made, run in the recording, and dropped.
    let graph = Graph::capture(&stream, |stream| {
        let inner = Graph::capture(&other, |other| step_by_way(&step, other, &x))?;
        inner.launch(stream)
    });
    graph
        .and_then(|graph| graph.launch(&stream))
        .expect("it runs");
    assert_eq!(value(&x), 1);
    // A buffer that this one uses and another recording drops, which may fail.
    for ends in [Ok(()), Err(RuntimeError::NotRecorded)] {
        let graph = Graph::capture(&stream, |stream| {
            let way = Buffer::<i32>::new(&device, 64)?;
            way.fill(stream, 0)?;
            step.launch(stream, 1, (&way,))?;
            let inner = Graph::capture(&other, move |_| {
                drop(way);
                ends
            });
            drop(inner);
            Ok::<_, RuntimeError>(())
        });
        graph
            .and_then(|graph| graph.launch(&stream))
            .expect("it runs");
    }
}

#[test]
fn what_a_graph_keeps_goes_with_it() {
    let device = emulator(None);
    let (step, _) = setup(&device);
    let [stream, other] = [(); 2].map(|()| Stream::new(&device).expect("a stream"));
    for ends in [Ok(()), Err(RuntimeError::NotRecorded)] {
        // A graph that uses memory which another keeps.
        let mut user = None;
        let keeper = Graph::capture(&stream, |_| {
            let way = Buffer::<i32>::new(&device, 64)?;
            user = Some(Graph::capture(&other, |other| {
                way.fill(other, 0)?;
                step.launch(other, 1, (&way,))
            })?);
            ends
        });
        let user = user.expect("it is recorded");
        let has_ended = keeper.is_err();
        let run = || user.launch(&other).is_ok();
        assert_eq!(run(), !has_ended);
        drop(keeper);
        assert!(!run());
    }
}
