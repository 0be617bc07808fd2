//! Machine code by the driver, in processes of their own: within one the driver assembles one kernel at a time.
//!
//! A worker reads requests from its standard input and answers each on standard output, until the input ends:
//!
//! ```text
//! request  1 if lines of the source are to be kept, else 0; length, 4 bytes; PTX
//! answer   1 if it was assembled, else 0; length, 4 bytes; machine code, or what went wrong
//! ```

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::driver::{Context, Device, assemble};
use crate::limits::CACHE_ENTRY_BYTES;
use crate::runtime::jit_options;

/// A worker, which ends with this.
pub(super) struct Worker {
    child: Child,
    /// None once it is closed.
    requests: Option<ChildStdin>,
    answers: Receiver<io::Result<(bool, Vec<u8>)>>,
}

impl Worker {
    /// Starts one for the device of a number: the command `tilelift warm --worker N`.
    pub(super) fn start(program: &Path, ordinal: u32) -> io::Result<Worker> {
        let mut child = Command::new(program)
            .args(["warm", "--worker", &ordinal.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = child.stdin.take();
        let mut from = child.stdout.take();
        let (send, answers) = channel();
        // Reading has no time limit of its own. The thread ends with the worker's output.
        thread::spawn(move || {
            while let Some(from) = &mut from {
                let answer = read(from).transpose();
                let Some(answer) = answer else {
                    return;
                };
                let is_end = answer.is_err();
                if send.send(answer).is_err() || is_end {
                    return;
                }
            }
        });
        Ok(Worker {
            child,
            requests,
            answers,
        })
    }

    /// The machine code of a text. After an error of the outer kind the worker is of no use any more.
    pub(super) fn assemble(
        &mut self,
        ptx: &str,
        lines: bool,
        limit: Duration,
    ) -> Result<Result<Vec<u8>, String>, String> {
        let gone = "the process that assembles has gone";
        let requests = self.requests.as_mut().ok_or(gone)?;
        write(requests, lines, ptx.as_bytes()).map_err(|error| format!("{gone}: {error}"))?;
        match self.answers.recv_timeout(limit) {
            Ok(Ok((true, code))) => Ok(Ok(code)),
            Ok(Ok((false, problem))) => Ok(Err(String::from_utf8_lossy(&problem).into_owned())),
            Ok(Err(error)) => Err(format!("{gone}: {error}")),
            Err(RecvTimeoutError::Disconnected) => Err(gone.to_owned()),
            Err(RecvTimeoutError::Timeout) => Err(format!(
                "the driver's assembler had not ended after {} s and was stopped",
                limit.as_secs()
            )),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // An idle one ends with its input. One that is at work, or hangs, is not waited for.
        drop(self.requests.take());
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is a worker for the device of a number, until standard input ends.
#[cfg_attr(
    not(feature = "tool"),
    expect(dead_code, reason = "the command is the worker")
)]
pub(crate) fn serve(ordinal: u32) -> Result<(), String> {
    let context = Device::get(ordinal).and_then(|device| Context::new(&device));
    let (mut from, mut to) = (io::stdin().lock(), io::stdout().lock());
    let failed = |error: io::Error| error.to_string();
    while let Some((lines, ptx)) = read(&mut from).map_err(failed)? {
        let assembled = match (&context, std::str::from_utf8(&ptx)) {
            (Ok(context), Ok(ptx)) => assemble(context, ptx, &jit_options(lines))
                .map(|cubin| cubin.bytes)
                .map_err(|error| error.to_string()),
            (Err(error), _) => Err(error.to_string()),
            (_, Err(error)) => Err(error.to_string()),
        };
        let written = match &assembled {
            Ok(code) => write(&mut to, true, code),
            Err(problem) => write(&mut to, false, problem.as_bytes()),
        };
        written.map_err(failed)?;
    }
    Ok(())
}

fn write(to: &mut impl Write, flag: bool, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    to.write_all(&[u8::from(flag)])?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// A flag and bytes; none at the end.
fn read(from: &mut impl Read) -> io::Result<Option<(bool, Vec<u8>)>> {
    let mut head = [0; 5];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let [flag, length @ ..] = head;
    let length = u64::from(u32::from_le_bytes(length));
    if length > CACHE_ENTRY_BYTES {
        return Err(io::Error::other("more bytes than machine code can have"));
    }
    let mut bytes = Vec::new();
    match from.take(length).read_to_end(&mut bytes)? as u64 == length {
        true => Ok(Some((flag == 1, bytes))),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_are_written() {
        let mut bytes = Vec::new();
        write(&mut bytes, true, b"abc").expect("memory takes it");
        write(&mut bytes, false, b"").expect("memory takes it");
        let mut from = bytes.as_slice();
        let frames = [(); 3].map(|()| read(&mut from).expect("it is whole"));
        let expected = [
            Some((true, b"abc".to_vec())),
            Some((false, Vec::new())),
            None,
        ];
        assert_eq!(frames, expected);
        for cut in [6, 7] {
            assert!(read(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        assert!(read(&mut [1, 255, 255, 255, 255, 0].as_slice()).is_err());
    }
}
