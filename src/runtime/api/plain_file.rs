//! Plain files, where somebody may have put something else.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a plain file to read it; none if a pipe, a device or a folder stands there.
pub(in crate::runtime) fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    // A device may act on being opened.
    match fs::metadata(path)?.is_file() {
        true => open_now(path),
        false => Ok(None),
    }
}

/// [`open`] of what may be another file than it was a moment before.
fn open_now(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    let file = without_waiting(File::options().read(true)).open(path)?;
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata)))
}

/// Lets the opening of a pipe not wait for who has its other end. For plain files it changes nothing.
pub(in crate::runtime) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        options,
        rustix::fs::OFlags::NONBLOCK.bits() as i32,
    );
    options
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_takes_the_place_of_a_file_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("file");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no pipe can be made");
            return;
        }
        assert!(open(&path).expect("it is there").is_none());
        assert!(open_now(&path).expect("it is there").is_none());
        let written = without_waiting(File::options().append(true)).open(&path);
        assert!(written.is_err(), "nobody reads");
        fs::remove_file(&path).expect("it is ours");
        fs::write(&path, "text").expect("it can be written");
        assert!(open(&path).expect("it is there").is_some());
    }
}
