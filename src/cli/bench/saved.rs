//! What was measured, and the same as JSON.

use std::path::Path;

use serde_json::{Value, json};

use super::sweep::Point;
use crate::cli::{Failure, Result};
use crate::emu::Stats;

/// The form that this version writes and reads.
const VERSION: u64 = 1;

/// A kernel, measured at each point of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) kernel: String,
    pub(super) device: String,
    pub(super) target: String,
    /// What the device can do at most: bytes and floating-point operations in a second.
    pub(super) limits: [Option<f64>; 2],
    /// What of the device computes: a type of numbers, and whether its units for matrices do.
    pub(super) computes: String,
    pub(super) rows: Vec<Row>,
}

/// A launch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) values: Point,
    pub(super) programs: u64,
    pub(super) cost: Cost,
    /// Bytes of memory that are needed, read and written once each.
    pub(super) bytes: Option<u64>,
    pub(super) flops: Option<u64>,
}

/// What it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cost {
    /// Milliseconds: of the middle one, and of those that a fifth is below and above.
    Time {
        median: f64,
        low: f64,
        high: f64,
        launches: usize,
    },
    /// What the emulator counts.
    Counts(Stats),
}

impl Cost {
    /// Of launches of so many milliseconds; none of none.
    pub(super) fn of_times(mut times: Vec<f64>) -> Option<Cost> {
        times.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let last = times.len().checked_sub(1)?;
            times.get((last as f64 * part).round() as usize).copied()
        };
        Some(Cost::Time {
            median: at(0.5)?,
            low: at(0.2)?,
            high: at(0.8)?,
            launches: times.len(),
        })
    }

    /// One number to compare: milliseconds, or instructions of warps.
    pub(super) fn number(&self) -> f64 {
        match self {
            Cost::Time { median, .. } => *median,
            Cost::Counts(stats) => stats.warp_instructions as f64,
        }
    }

    fn json(&self) -> Value {
        match self {
            Cost::Time {
                median,
                low,
                high,
                launches,
            } => json!({"median_ms": median, "p20_ms": low, "p80_ms": high, "launches": launches}),
            Cost::Counts(stats) => json!({
                "lane_instructions": stats.lane_instructions,
                "warp_instructions": stats.warp_instructions,
                "barriers": stats.barriers,
                "shared_wavefronts": stats.shared_wavefronts,
                "shared_ideal_wavefronts": stats.shared_ideal_wavefronts,
                "global_requests": stats.global_requests,
                "global_sectors": stats.global_sectors,
                "global_bytes": stats.global_bytes,
            }),
        }
    }

    fn read(value: &Value) -> Option<Cost> {
        let float = |name: &str| value.get(name)?.as_f64();
        let count = |name: &str| value.get(name)?.as_u64();
        if let Some(median) = float("median_ms") {
            return Some(Cost::Time {
                median,
                low: float("p20_ms")?,
                high: float("p80_ms")?,
                launches: count("launches")?.try_into().ok()?,
            });
        }
        Some(Cost::Counts(Stats {
            lane_instructions: count("lane_instructions")?,
            warp_instructions: count("warp_instructions")?,
            barriers: count("barriers")?,
            shared_wavefronts: count("shared_wavefronts")?,
            shared_ideal_wavefronts: count("shared_ideal_wavefronts")?,
            global_requests: count("global_requests")?,
            global_sectors: count("global_sectors")?,
            global_bytes: count("global_bytes")?,
        }))
    }
}

impl Measured {
    /// The file.
    pub(super) fn json(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let values = row.values.iter();
            let values = values.map(|(name, value)| (name.clone(), value.clone().into()));
            let values: serde_json::Map<String, Value> = values.collect();
            json!({
                "values": values,
                "programs": row.programs,
                "cost": row.cost.json(),
                "bytes": row.bytes,
                "flops": row.flops,
                "gb_per_s": row.rate(row.bytes).map(|rate| rate / 1e9),
                "tflop_per_s": row.rate(row.flops).map(|rate| rate / 1e12),
            })
        });
        let rows: Vec<Value> = rows.collect();
        let file = json!({
            "version": VERSION,
            "kernel": self.kernel,
            "device": self.device,
            "target": self.target,
            "limits": {
                "bytes_per_s": self.limits[0],
                "flops_per_s": self.limits[1],
                "computes": self.computes,
            },
            "rows": rows,
        });
        format!("{file:#}\n")
    }

    /// Reads a file that was saved.
    pub(super) fn read(path: &Path) -> Result<Measured> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::Io {
            path: path.to_owned(),
            error,
        })?;
        let wrong = |why: &str| Failure::Input(format!("{}: error: {why}", path.display()));
        let file: Value = serde_json::from_str(&text)
            .map_err(|error| wrong(&format!("it is no JSON: {error}")))?;
        if file.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(wrong(
                "it is no run that this version of `tilelift bench --save` wrote",
            ));
        }
        Measured::of(&file).ok_or_else(|| wrong("a part of the saved run is missing"))
    }

    fn of(file: &Value) -> Option<Measured> {
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let limits = file.get("limits")?;
        let limit = |name: &str| limits.get(name).and_then(Value::as_f64);
        let row = |row: &Value| {
            let value =
                |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            let values = row.get("values")?.as_object()?.iter();
            Some(Row {
                values: values.map(value).collect::<Option<_>>()?,
                programs: row.get("programs")?.as_u64()?,
                cost: Cost::read(row.get("cost")?)?,
                bytes: row.get("bytes")?.as_u64(),
                flops: row.get("flops")?.as_u64(),
            })
        };
        let rows = file.get("rows")?.as_array()?;
        Some(Measured {
            kernel: text(file, "kernel")?,
            device: text(file, "device")?,
            target: text(file, "target")?,
            limits: [limit("bytes_per_s"), limit("flops_per_s")],
            computes: text(limits, "computes")?,
            rows: rows.iter().map(row).collect::<Option<_>>()?,
        })
    }

    /// The row of the same values.
    pub(super) fn row(&self, values: &Point) -> Option<&Row> {
        let is_same = |row: &&Row| {
            row.values.len() == values.len()
                && values.iter().all(|value| row.values.contains(value))
        };
        self.rows.iter().find(is_same)
    }
}

impl Row {
    /// So much of something in a second, if time was measured.
    pub(super) fn rate(&self, amount: Option<u64>) -> Option<f64> {
        match self.cost {
            Cost::Time { median, .. } if median > 0.0 => Some(amount? as f64 / (median / 1e3)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_read_again() {
        let row = |n: &str, cost| Row {
            values: vec![("N".to_owned(), n.to_owned())],
            programs: 4,
            cost,
            bytes: Some(1 << 20),
            flops: None,
        };
        let times = Cost::of_times(vec![0.5, 0.1, 0.3, 0.2, 0.4]).expect("there are some");
        let expected = Cost::Time {
            median: 0.3,
            low: 0.2,
            high: 0.4,
            launches: 5,
        };
        assert_eq!(times, expected);
        assert_eq!(Cost::of_times(Vec::new()), None);
        let counts = Cost::Counts(Stats {
            global_sectors: 7,
            ..Stats::default()
        });
        let measured = Measured {
            kernel: "softmax".to_owned(),
            device: "a \"GPU\"".to_owned(),
            target: "sm_90a".to_owned(),
            limits: [Some(3.3e12), None],
            computes: "f32".to_owned(),
            rows: vec![row("128", times), row("256", counts)],
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.json");
        std::fs::write(&path, measured.json()).expect("writable");
        let read = Measured::read(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(read, measured);
        let found = read.row(&vec![("N".to_owned(), "256".to_owned())]);
        assert_eq!(found, Some(&measured.rows[1]));
        assert_eq!(read.row(&Vec::new()), None);
        // 2^20 bytes in 0.3 ms.
        let rate = measured.rows[0].rate(measured.rows[0].bytes);
        assert!(
            rate.is_some_and(|rate| (rate - 3.495e9).abs() < 1e6),
            "{rate:?}"
        );

        for (text, part) in [
            ("{", "no JSON"),
            ("{}", "no run"),
            ("{\"version\": 1}", "missing"),
        ] {
            std::fs::write(&path, text).expect("writable");
            let error = Measured::read(&path).map(|_| ()).expect_err(text);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
