//! A cache that machines share, over a real server that is stopped, killed and full while it is used.
//!
//! Asks for `redis-server`, from the system's packages, and for the features `opendal` and `opendal/services-redis`.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tilelift::runtime::cache::{
    Cache, EntryKind, KeyBuilder, OpendalStore, Origin, Secret, Settings, Shared,
};
use tilelift::runtime::{Deadline, Stopped};

/// Long enough for a machine under load.
const LONG: Duration = Duration::from_secs(60);

/// A server on a port of this machine, killed when dropped.
struct Server {
    port: u16,
    process: Child,
    dir: tempfile::TempDir,
}

impl Server {
    /// None, and a word about it, where there is no `redis-server`.
    fn start(port: u16) -> Option<Server> {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let spawned = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--port", &port.to_string()])
            .args(["--maxmemory", "8mb", "--maxmemory-policy", "noeviction"])
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .spawn();
        let Ok(process) = spawned else {
            eprintln!("skipped: no redis-server found");
            return None;
        };
        let server = Server { port, process, dir };
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!(
            "redis-server does not listen in {}",
            server.dir.path().display()
        );
    }

    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("there is kill").success());
    }

    /// The cache of a machine that uses the server.
    fn machine(&self) -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let address = format!("redis://127.0.0.1:{}", self.port);
        let store = OpendalStore::from_uri(&address).expect("an address of redis");
        let mut shared = Shared::new(store, Secret::new([7; 32]));
        shared.timeout = Duration::from_secs(2);
        shared.pause = Duration::ZERO;
        let cache = Cache::new(Settings {
            shared: Some(shared),
            ..Settings::new(dir.path())
        });
        (dir, cache)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Asks for an entry of so many bytes.
fn ask(cache: &Cache, n: u32, bytes: usize) -> Origin {
    let key = KeyBuilder::new().part("n", n.to_le_bytes()).finish();
    let (kind, deadline) = (EntryKind::Kernel, Deadline::default());
    let make = || Ok::<_, Stopped>(vec![n as u8; bytes]);
    let (contents, origin) = cache
        .get_or_make(kind, &key, &deadline, make)
        .expect("there is no deadline");
    assert_eq!(contents, vec![n as u8; bytes]);
    origin
}

/// Asks for new entries until one comes to the server and back.
fn ask_until_shared(server: &Server, from: u32) -> u32 {
    let (_dir, writer) = server.machine();
    for n in from..from + 500 {
        ask(&writer, n, 10);
        assert!(writer.flush(LONG));
        let (_dir, reader) = server.machine();
        if ask(&reader, n, 10) == Origin::Shared {
            return n;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the server is there, and is not used");
}

#[test]
fn a_server_that_stops_dies_and_is_full_costs_no_kernel() {
    let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr());
    let port = free.expect("a free port").port();
    let Some(mut server) = Server::start(port) else {
        return;
    };
    let ((_a, first), (_b, second)) = (server.machine(), server.machine());
    assert_eq!(ask(&first, 1, 100_000), Origin::Made);
    assert!(first.flush(LONG));
    assert_eq!(ask(&second, 1, 100_000), Origin::Shared);

    // It accepts connections and answers nothing.
    server.signal("-STOP");
    assert_eq!(ask(&first, 2, 10), Origin::Made);
    assert_eq!(ask(&second, 3, 10), Origin::Made);
    server.signal("-CONT");
    ask_until_shared(&server, 1_000);

    // It is gone.
    let _ = server.process.kill();
    let _ = server.process.wait();
    for n in 10..20 {
        assert_eq!(ask(&first, n, 10), Origin::Made);
    }
    let server = Server::start(port).expect("it was there before");
    ask_until_shared(&server, 2_000);

    // It takes nothing more, and is still read.
    let (_c, full) = server.machine();
    for n in 3_000..3_020 {
        assert_eq!(ask(&full, n, 1 << 20), Origin::Made);
        assert!(full.flush(LONG));
    }
    let (_d, reader) = server.machine();
    assert_eq!(ask(&reader, 3_000, 1 << 20), Origin::Shared);
    assert_eq!(ask(&reader, 3_019, 1 << 20), Origin::Made);
}
