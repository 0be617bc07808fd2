//! Objects of `cust`, against the stand-in for the driver.

use std::sync::Arc;

use tilelift::driver::cust::error::CudaError;
use tilelift::driver::cust::memory::{DeviceBuffer, DeviceCopy};
use tilelift::driver::cust::stream::{Stream as CustStream, StreamFlags};
use tilelift::driver::cust::{self, context};
use tilelift::driver::{self, DriverError, RawPtr};
use tilelift::runtime::{
    Arg, Buffer, Device, DeviceOptions, Pointer, Readable, RuntimeError, Stream, Writable,
};

use crate::stub;
use crate::tools::{add_program, emulator, role};

fn context() -> context::Context {
    cust::quick_init().expect("the stand-in starts")
}

fn theirs() -> CustStream {
    CustStream::new(StreamFlags::DEFAULT, None).expect("there is a stream")
}

fn plain(context: &context::Context) -> Device {
    Device::from_cust(context, DeviceOptions::plain()).expect("it is new enough")
}

#[test]
fn context_stream_and_memory_of_cust_are_launched_with() {
    if role().is_some() {
        let context = context();
        let device = plain(&context);
        // The context is the device's primary one, which counts who holds it.
        drop(context);
        let x = DeviceBuffer::from_slice(&[1.5_f32; 256]).expect("there is memory");
        let mut y = DeviceBuffer::from_slice(&[0.0_f32; 256]).expect("there is memory");
        let add = device.kernel(&add_program(), "add");
        let add = add.and_then(|kernel| kernel.constant("BLOCK", 128));
        let add = add.expect("there is a kernel");
        let shared = Arc::new(theirs());
        let stream = Stream::from_cust(&device, shared.clone()).expect("it is of this device");
        let driver = stream.as_driver().expect("it is a GPU's");
        assert_eq!(driver.as_raw(), shared.as_inner().cast());
        let launched = add.launch(&stream, 2, (&x, &x.index(..), &y, -7));
        launched.expect("it is launched");
        shared.synchronize().expect("nothing is wrong");
        drop(stream);
        drop(shared);

        // Given away, it goes with ours. Views copy, as for kernels with typed arguments.
        let stream = Stream::from_cust(&device, theirs()).expect("it is of this device");
        let mut to = (&mut y).into_view_mut();
        to.copy_from(&stream, (&x).into_view()).expect("as long");
        assert_eq!(to.as_view().read(&stream), Ok(vec![1.5; 256]));
        assert_eq!(y.as_host_vec(), Ok(vec![1.5; 256]));
        let same = RawPtr::from(&y).to_cust::<f32>();
        assert_eq!(same.as_raw(), Pointer::from(&y).address());
        return;
    }
    let test = "of_cust::context_stream_and_memory_of_cust_are_launched_with";
    let Some(log) = stub::run(test, "launch", &[]) else {
        return;
    };
    let launch = log.lines().find(|line| line.starts_with("launch"));
    let launch = launch.expect("there was one");
    assert!(launch.starts_with("launch add [2, 1, 1] 128 0: "), "{log}");
    let words: Vec<&str> = launch.split(' ').skip(7).collect();
    assert!(words.len() == 4 && words[0] == words[1], "{log}");
    assert!(words[0] != words[2] && words[3].ends_with("fff9"), "{log}");
    // Each of the two once, by `cust`.
    assert_eq!(log.matches("destroy a stream of cust").count(), 2, "{log}");
}

#[test]
fn objects_of_cust_that_do_not_fit_are_refused() {
    if role().is_some() {
        let context = context();
        let here = plain(&context);
        let other = Device::gpu_with(1, DeviceOptions::plain()).expect("there are two");
        let other = other.as_driver().expect("it is a GPU");
        let refused = driver::Stream::from_cust(other, theirs());
        let error = refused.expect_err("it is of the first device");
        assert_eq!(error, DriverError::ForeignContext { what: "the stream" });
        let refused = Stream::from_cust(&emulator(None), theirs());
        assert!(matches!(refused, Err(RuntimeError::OtherDevice { .. })));
        // Memory of another length.
        let x = DeviceBuffer::from_slice(&[1_i32; 4]).expect("there is memory");
        let mut y = Buffer::<i32>::new(&here, 3).expect("there is memory");
        let stream = here.stream();
        let error = y.view_mut().copy_from(&stream, (&x).into_view());
        let text = error.expect_err("another length").to_string();
        assert!(text.contains('3') && text.contains('4'), "{text}");
        // No bytes are at the null pointer.
        let none = DeviceBuffer::<f32>::from_slice(&[]).expect("nothing is needed");
        assert_eq!(
            (Pointer::from(&none).address(), Pointer::from(&none).bytes()),
            (0, 0)
        );
        return;
    }
    let test = "of_cust::objects_of_cust_that_do_not_fit_are_refused";
    stub::run(test, "refuse", &[("STUB_DEVICES", "2")]);
}

#[test]
fn errors_of_cust_are_passed_on() {
    fn theirs() -> Result<(), DriverError> {
        Err(CudaError::NotPermitted)?
    }
    let error = theirs().expect_err("it fails");
    assert!(matches!(error, DriverError::Call { code: 800, .. }));
    assert_eq!(error.to_cust(), CudaError::NotPermitted);
}

/// Every number that `cust` copies and buffers hold.
#[test]
fn numbers_of_both_are_arguments() {
    fn is_argument<T: tilelift::runtime::Element + DeviceCopy>()
    where
        for<'a> Arg<'a>: From<&'a DeviceBuffer<T>>,
    {
    }
    is_argument::<bool>();
    is_argument::<i8>();
    is_argument::<u64>();
    is_argument::<f32>();
    is_argument::<f64>();
}
