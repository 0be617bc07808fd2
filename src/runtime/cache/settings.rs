//! Where a cache is, how large it may grow and whom it trusts.

use std::path::{Path, PathBuf};

use super::secret::Secret;
use super::store::Shared;
use crate::runtime::api::environment;
use crate::runtime::api::warning::warn_once;

/// Bytes that a cache may take where nothing is said.
pub const DEFAULT_LIMIT: u64 = 1 << 30;

/// Where a cache is and how large it may grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its folder, made when first written to.
    pub dir: PathBuf,
    /// Folders that are only read, asked in this order after `dir`.
    pub seeds: Vec<PathBuf>,
    /// Bytes of all entries and of the autotuner's results.
    pub limit: u64,
    /// With what entries of `dir` and of the seeds are authenticated. With one, folders are read that others may write to.
    pub secret: Option<Secret>,
    /// A store that machines share, asked last.
    pub shared: Option<Shared>,
}

impl Settings {
    /// A folder without seeds.
    pub fn new(dir: impl Into<PathBuf>) -> Settings {
        Settings {
            dir: dir.into(),
            seeds: Vec::new(),
            limit: DEFAULT_LIMIT,
            secret: None,
            shared: None,
        }
    }

    /// What the environment says; none if it switches the cache off or there is no place for one.
    pub fn from_env() -> Option<Settings> {
        if environment::switch("TILELIFT_CACHE") == Some(false) {
            return None;
        }
        let named = environment::value("TILELIFT_CACHE_DIR").map(PathBuf::from);
        let dir = named.or_else(platform_dir)?;
        let seeds = environment::value("TILELIFT_CACHE_SEED").unwrap_or_default();
        let secret = secret();
        Some(Settings {
            dir,
            seeds: std::env::split_paths(&seeds)
                .filter(|path| path != Path::new(""))
                .map(|path| environment::folder("TILELIFT_CACHE_SEED", &path))
                .collect(),
            limit: environment::size("TILELIFT_CACHE_SIZE").unwrap_or(DEFAULT_LIMIT),
            shared: shared(secret.as_ref()),
            secret,
        })
    }
}

/// The platform's folder for caches.
fn platform_dir() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.cache_dir().join("tilelift"))
}

/// The secret that the environment says, or names the file of.
fn secret() -> Option<Secret> {
    const NAME: &str = "TILELIFT_CACHE_KEY";
    let value = environment::value(NAME)?;
    let read = match value.to_str().map(Secret::from_hex) {
        Some(Ok(secret)) => Ok(secret),
        _ => Secret::from_file(Path::new(&value)),
    };
    // What it says is not shown: it may be a secret with a digit too few.
    let tell = |error| {
        warn_once(&format!(
            "{NAME} is neither a secret nor the file of one: {error}"
        ))
    };
    read.map_err(tell).ok()
}

/// The shared store that the environment names.
fn shared(secret: Option<&Secret>) -> Option<Shared> {
    const NAME: &str = "TILELIFT_CACHE_SHARED";
    let address = environment::value(NAME)?;
    let address = address.to_string_lossy();
    let store = match secret {
        None => Err("entries must be authenticated: set TILELIFT_CACHE_KEY".to_owned()),
        Some(secret) => open(&address, secret),
    };
    let tell = |error| warn_once(&format!("{NAME} is not used: {error}"));
    let mut shared = store.map_err(tell).ok()?;
    shared.writes = environment::switch("TILELIFT_CACHE_SHARED_WRITE").unwrap_or(true);
    Some(shared)
}

#[cfg(feature = "opendal")]
fn open(address: &str, secret: &Secret) -> Result<Shared, String> {
    let store = super::OpendalStore::from_uri(address).map_err(|error| error.to_string())?;
    Ok(Shared::new(store, secret.clone()))
}

#[cfg(not(feature = "opendal"))]
fn open(_address: &str, _secret: &Secret) -> Result<Shared, String> {
    Err("this program was built without the feature `opendal` of tilelift".to_owned())
}
