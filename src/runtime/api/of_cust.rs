//! Objects of `cust` as devices, streams and arguments, for applications that are written against it.
//!
//! Memory of `cust` is typed and borrowed, so nothing here is unsafe; whose device it is of is not known and not checked.

use std::sync::Arc;

use cust::memory::{DeviceBuffer, DeviceCopy, DeviceSlice};

use crate::driver;

use crate::runtime::api::argument::Arg;
use crate::runtime::api::buffer::{Element, Pointer};
use crate::runtime::api::device::{Device, DeviceOptions};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::stream::Stream;
use crate::runtime::api::view::{Readable, View, ViewMut, Writable};

impl Device {
    /// The GPU of a context that the application has by way of `cust`, as [`Device::from_context`].
    ///
    /// # Errors
    ///
    /// A device that is too old; what the driver reports.
    pub fn from_cust(
        context: &cust::context::Context,
        options: DeviceOptions,
    ) -> Result<Device, RuntimeError> {
        let context =
            driver::Context::from_cust(context).map_err(|error| RuntimeError::Driver {
                kernel: None,
                line: None,
                error: Box::new(error),
            })?;
        Device::from_context(context, options)
    }
}

impl Stream {
    /// A stream of `cust`, or one that is shared with the application in an `Arc`, see
    /// [`from_cust`](driver::Stream::from_cust) of the driver layer.
    ///
    /// # Errors
    ///
    /// It is of another device.
    pub fn from_cust(
        device: &Device,
        stream: impl Into<Arc<cust::stream::Stream>>,
    ) -> Result<Stream, RuntimeError> {
        let Some(context) = device.as_driver() else {
            return Err(RuntimeError::OtherDevice {
                what: "the stream".to_owned(),
            });
        };
        let stream = driver::Stream::from_cust(context, stream);
        Stream::from_driver(device, stream.map_err(|error| device.failed(None, error))?)
    }
}

macro_rules! memory {
    ($($memory:ident)*) => {$(
        impl<'a, T: Element + DeviceCopy> From<&'a $memory<T>> for Pointer<'a> {
            #[inline]
            fn from(memory: &'a $memory<T>) -> Pointer<'a> {
                Pointer::from_driver(memory.into(), T::DTYPE)
            }
        }

        impl<'a, T: Element + DeviceCopy> From<&'a $memory<T>> for Arg<'a> {
            #[inline]
            fn from(memory: &'a $memory<T>) -> Arg<'a> {
                Arg::from(Pointer::from(memory))
            }
        }

        impl<T: Element + DeviceCopy> Readable<T> for &$memory<T> {
            fn into_view<'a>(self) -> View<'a, T>
            where
                Self: 'a,
            {
                Pointer::from(self).into()
            }
        }

        impl<T: Element + DeviceCopy> Readable<T> for &mut $memory<T> {
            fn into_view<'a>(self) -> View<'a, T>
            where
                Self: 'a,
            {
                Pointer::from(&*self).into()
            }
        }

        impl<T: Element + DeviceCopy> Writable<T> for &mut $memory<T> {
            fn into_view_mut<'a>(self) -> ViewMut<'a, T>
            where
                Self: 'a,
            {
                Pointer::from(&*self).into()
            }
        }
    )*};
}

memory! { DeviceBuffer DeviceSlice }
