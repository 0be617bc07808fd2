//! Stores that Apache OpenDAL knows: object stores, databases, servers of files.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::mpsc::sync_channel;

use ::opendal::layers::TimeoutLayer;
use ::opendal::{Error, ErrorKind, Operator};
use futures_core::Stream;
use tokio::runtime::{Builder, Runtime};

use super::store::Store;

/// A [`Store`] over an operator of OpenDAL. Which services there are is decided by the features of the crate `opendal` that the
/// application asks for, such as `services-s3` or `services-redis`.
pub struct OpendalStore {
    operator: Operator,
    /// What requests run on; none when it is dropped.
    runtime: Option<Runtime>,
}

impl OpendalStore {
    /// A store over an operator, which has its own ideas of time and of trying again.
    ///
    /// # Errors
    ///
    /// If the system has no thread for it.
    pub fn new(operator: Operator) -> io::Result<OpendalStore> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tilelift-opendal")
            .enable_all()
            .build()?;
        Ok(OpendalStore {
            operator,
            runtime: Some(runtime),
        })
    }

    /// The store of an address, such as `redis://cache.example:6379` or `s3://bucket/folder?region=eu-central-1`. Requests that take
    /// longer than OpenDAL's usual bounds (a minute) are given up, so that a store that hangs holds nothing for ever.
    ///
    /// # Errors
    ///
    /// If the address is none, names a service that is not built in, or is refused by it.
    pub fn from_uri(uri: &str) -> io::Result<OpendalStore> {
        let operator = Operator::from_uri(uri).map_err(io::Error::other)?;
        OpendalStore::new(operator.layer(TimeoutLayer::default()))
    }

    /// Waits for a request, which runs on threads of the store's own, so that this can be called from anywhere.
    fn wait<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> io::Result<T> {
        let runtime = self.runtime.as_ref();
        let runtime = runtime.ok_or_else(|| io::Error::other("the store is closed"))?;
        let (to, from) = sync_channel(1);
        runtime.spawn(async move {
            // Who asked is there: it waits below.
            let _ = to.send(request.await);
        });
        let answer = from.recv();
        let answer = answer.map_err(|_| io::Error::other("the request panicked"))?;
        answer.map_err(io::Error::other)
    }
}

impl Store for OpendalStore {
    fn read(&self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let (operator, name) = (self.operator.clone(), name.to_owned());
        self.wait(async move {
            match read_within(&operator, &name, limit).await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (operator, name, bytes) = (self.operator.clone(), name.to_owned(), bytes.to_vec());
        self.wait(async move { operator.write(&name, bytes).await.map(|_| ()) })
    }
}

/// What stands under a name. What the store says of its length is not believed: the bytes are counted as they come, and nothing is
/// read behind `limit`.
async fn read_within(operator: &Operator, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
    let check = |length: u64| match length > limit {
        true => {
            let what = format!("{length} bytes or more, and an entry has {limit} at most");
            Err(Error::new(ErrorKind::Unexpected, what))
        }
        false => Ok(()),
    };
    // Some services answer with all of it at once.
    check(operator.stat(name).await?.content_length())?;
    let mut stream = operator.reader(name).await?.into_stream(..).await?;
    let mut all = Vec::new();
    while let Some(part) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
        let part = part?;
        check((all.len() + part.len()) as u64)?;
        part.for_each(|bytes| all.extend_from_slice(&bytes));
    }
    Ok(all)
}

impl Drop for OpendalStore {
    fn drop(&mut self) {
        // Waiting for requests that hang would take as long as they do.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for OpendalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not its address, which may have a password in it.
        f.write_str(self.operator.info().scheme())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs the feature `opendal/services-fs`.
    #[cfg(unix)]
    #[test]
    fn what_has_no_end_is_not_read_to_it() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let Ok(store) = OpendalStore::from_uri(&format!("fs://{}", folder.path().display())) else {
            eprintln!("skipped: the service `fs` is not built in");
            return;
        };
        store.write("v1/ab/c", b"12345678").expect("it is ours");
        let read = |name: &str, limit| store.read(name, limit).map_err(|error| error.to_string());
        assert_eq!(read("v1/ab/c", 8), Ok(Some(b"12345678".to_vec())));
        assert_eq!(read("v1/ab/d", 8), Ok(None));
        let error = read("v1/ab/c", 7).expect_err("it is longer");
        assert!(error.contains("an entry has 7 at most"), "{error}");
        // Its length is said to be nothing.
        let endless = folder.path().join("v1/ab/z");
        std::os::unix::fs::symlink("/dev/zero", endless).expect("the folder takes links");
        let error = read("v1/ab/z", 1 << 20).expect_err("it is longer");
        assert!(error.contains("an entry has 1048576 at most"), "{error}");
    }
}
