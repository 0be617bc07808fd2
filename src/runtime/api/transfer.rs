//! Copies between host and device, and on it: of whatever a pointer points to, in the order of a stream.

use crate::runtime::api::buffer::{Element, Pointer};
use crate::runtime::api::device::{Backend, Device};
use crate::runtime::api::dtype::DType;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::stream::Stream;

#[cfg(feature = "cuda")]
use crate::driver::RawPtr;

/// The two memories of a copy, in messages.
const FROM: &str = "memory that is read";
const TO: &str = "memory that is written";

#[cfg(feature = "cuda")]
pub(in crate::runtime) fn raw(pointer: Pointer<'_>) -> RawPtr<'_> {
    RawPtr::from_parts(pointer.address(), pointer.bytes())
}

/// An error unless memory and stream are of one device, as far as that is known; `what` says which memory.
pub(in crate::runtime) fn expect_device(
    what: &str,
    pointer: Pointer<'_>,
    stream: &Stream,
) -> Result<(), RuntimeError> {
    let device = stream.device();
    if pointer.device() == 0 || pointer.device() == device.id() {
        return device.usable();
    }
    Err(RuntimeError::OtherDevice {
        what: format!("the {what}"),
    })
}

fn expect(
    what: &'static str,
    pointer: Pointer<'_>,
    bytes: usize,
    size: usize,
) -> Result<(), RuntimeError> {
    if bytes != pointer.bytes() {
        return Err(RuntimeError::Length {
            what,
            got: bytes / size,
            expected: pointer.bytes() / size,
        });
    }
    Ok(())
}

/// Reads as many numbers as there are, after what the stream holds.
pub(in crate::runtime) fn read<T: Element>(
    from: Pointer<'_>,
    stream: &Stream,
    values: &mut [T],
) -> Result<(), RuntimeError> {
    let size = T::DTYPE.bytes();
    expect("values to read", from, values.len() * size, size)?;
    expect_device(FROM, from, stream)?;
    match stream.device().backend() {
        Backend::Emulated(emulated) => {
            stream.expect_no_recording("reading a buffer")?;
            let bytes = emulated.memory().read_raw(from.address(), from.bytes())?;
            let numbers = bytes.chunks_exact(size).map(T::take);
            values.iter_mut().zip(numbers).for_each(|(v, n)| *v = n);
            Ok(())
        }
        #[cfg(feature = "cuda")]
        Backend::Gpu(_) => {
            let (device, driver) = (stream.device(), stream.driver()?);
            let read = match T::bits_mut(values) {
                Some(bits) => raw(from).read(driver, bits),
                None => {
                    let mut bits = vec![T::Bits::default(); values.len()];
                    let read = raw(from).read(driver, &mut bits);
                    let numbers = bits.into_iter().map(T::of_bits);
                    values.iter_mut().zip(numbers).for_each(|(v, n)| *v = n);
                    read
                }
            };
            read.map_err(|error| device.failed(None, error))?;
            device.check_asserts()
        }
    }
}

/// Writes as many numbers as there are, after what the stream holds, and waits for that.
pub(in crate::runtime) fn write<T: Element>(
    to: Pointer<'_>,
    stream: &Stream,
    values: &[T],
) -> Result<(), RuntimeError> {
    let size = T::DTYPE.bytes();
    expect("values to write", to, values.len() * size, size)?;
    expect_device(TO, to, stream)?;
    match stream.device().backend() {
        Backend::Emulated(emulated) => {
            stream.expect_no_recording("writing a buffer")?;
            Ok(emulated.memory().write(to.address(), &bytes_of(values))?)
        }
        #[cfg(feature = "cuda")]
        Backend::Gpu(_) => {
            let written = raw(to).write(stream.driver()?, &T::bits(values));
            written.map_err(|error| stream.device().failed(None, error))
        }
    }
}

/// Sets every byte, in the order of the stream.
pub(in crate::runtime) fn fill(
    to: Pointer<'_>,
    stream: &Stream,
    byte: u8,
) -> Result<(), RuntimeError> {
    expect_device(TO, to, stream)?;
    if to.bytes() == 0 {
        return Ok(());
    }
    match stream.device().backend() {
        Backend::Emulated(_) => stream.fill_emulated(to.address(), to.bytes(), byte),
        #[cfg(feature = "cuda")]
        Backend::Gpu(_) => {
            let filled = raw(to).fill(stream.driver()?, byte);
            filled.map_err(|error| stream.device().failed(None, error))
        }
    }
}

/// Copies on a device, or from one to another, in the order of the stream.
pub(in crate::runtime) fn copy(
    from: Pointer<'_>,
    to: Pointer<'_>,
    stream: &Stream,
) -> Result<(), RuntimeError> {
    expect("numbers to copy", to, from.bytes(), to.dtype().bytes())?;
    let device = stream.device();
    let is_elsewhere = |memory: Pointer<'_>| ![0, device.id()].contains(&memory.device());
    match (is_elsewhere(from), is_elsewhere(to)) {
        (false, false) => {}
        // It has to be in the order of one of them.
        (true, true) => return expect_device(FROM, from, stream),
        (true, false) => return copy_between(from, &other_device(from)?, to, device, stream),
        (false, true) => return copy_between(from, device, to, &other_device(to)?, stream),
    }
    device.usable()?;
    let (start, end) = (
        from.address().max(to.address()),
        from.address().min(to.address()) + to.bytes() as u64,
    );
    if start < end && from.address() != to.address() {
        return Err(RuntimeError::Overlap);
    }
    if to.bytes() == 0 {
        return Ok(());
    }
    match device.backend() {
        Backend::Emulated(_) => stream.copy_emulated(from.address(), to.address(), to.bytes()),
        #[cfg(feature = "cuda")]
        Backend::Gpu(_) => {
            let copied = raw(to).copy_from(stream.driver()?, raw(from));
            copied.map_err(|error| device.failed(None, error))
        }
    }
}

/// The device of memory that is of another than the stream's.
fn other_device(memory: Pointer<'_>) -> Result<Device, RuntimeError> {
    // Whoever lent the memory holds the device.
    let device = Device::of_memory(memory.device()).ok_or_else(|| RuntimeError::OtherDevice {
        what: "the memory".to_owned(),
    })?;
    device.usable()?;
    Ok(device)
}

/// Copies from one device to another, in the order of a stream of either. The other's work is not waited for: that is for events.
fn copy_between(
    from: Pointer<'_>,
    from_device: &Device,
    to: Pointer<'_>,
    to_device: &Device,
    stream: &Stream,
) -> Result<(), RuntimeError> {
    stream.device().usable()?;
    match (from_device.backend(), to_device.backend()) {
        #[cfg(feature = "cuda")]
        (Backend::Gpu(source), Backend::Gpu(target)) => {
            let copied = raw(to).copy_from_peer(
                stream.driver()?,
                &target.context,
                raw(from),
                &source.context,
            );
            copied.map_err(|error| stream.device().failed(None, error))
        }
        // The emulator does at once what it is asked for, and its memory is the host's.
        _ => {
            stream.expect_no_recording("copying between devices")?;
            let own = |device: &Device| match device.id() == stream.device().id() {
                true => stream.clone(),
                false => device.stream(),
            };
            let mut bytes = vec![0_u8; from.bytes()];
            read(from.cast(DType::U8), &own(from_device), &mut bytes)?;
            write(to.cast(DType::U8), &own(to_device), &bytes)
        }
    }
}

/// The bytes of numbers.
pub(in crate::runtime) fn bytes_of<T: Element>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * T::DTYPE.bytes());
    values.iter().for_each(|value| value.put(&mut bytes));
    bytes
}
