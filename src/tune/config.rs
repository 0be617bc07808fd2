//! Configurations: what the autotuner chooses among.

use std::fmt;

use crate::runtime::{Constant, Kernel, RuntimeError};

/// A way to set up a kernel. What it does not say stays as the kernel has it.
///
/// With `serde` it is as in `{"constants": {"BLOCK": 128}, "num_warps": 4}`.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Config {
    /// Constants by name.
    #[cfg_attr(
        feature = "serde",
        serde(with = "data", skip_serializing_if = "Vec::is_empty")
    )]
    pub constants: Vec<(String, Constant)>,
    /// Warps of a program.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub num_warps: Option<u32>,
    /// Stages of loops of products.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub num_stages: Option<u8>,
    /// CTAs of a program, see [`Kernel::ctas`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub num_ctas: Option<u32>,
    /// Most registers of a thread.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub max_registers: Option<u16>,
}

impl Config {
    /// The kernel as it is.
    pub fn new() -> Config {
        Config::default()
    }

    /// With a constant, in place of another of the name.
    #[must_use]
    pub fn constant(mut self, name: &str, value: impl Into<Constant>) -> Config {
        let value = value.into();
        match self.constants.iter_mut().find(|(n, _)| n == name) {
            Some(known) => known.1 = value,
            None => self.constants.push((name.to_owned(), value)),
        }
        self
    }

    /// With so many warps.
    #[must_use]
    pub fn warps(mut self, num_warps: u32) -> Config {
        self.num_warps = Some(num_warps);
        self
    }

    /// With so many stages.
    #[must_use]
    pub fn stages(mut self, num_stages: u8) -> Config {
        self.num_stages = Some(num_stages);
        self
    }

    /// With the warps of so many CTAs, see [`Kernel::ctas`].
    #[must_use]
    pub fn ctas(mut self, num_ctas: u32) -> Config {
        self.num_ctas = Some(num_ctas);
        self
    }

    /// With so many registers at most.
    #[must_use]
    pub fn registers(mut self, max_registers: u16) -> Config {
        self.max_registers = Some(max_registers);
        self
    }

    /// A kernel set up so.
    ///
    /// # Errors
    ///
    /// A number that is not possible.
    pub fn set_up(&self, kernel: &Kernel) -> Result<Kernel, RuntimeError> {
        let mut kernel = kernel.clone();
        for (name, value) in &self.constants {
            kernel = kernel.constant(name, value.clone())?;
        }
        if let Some(num_warps) = self.num_warps {
            kernel = kernel.warps(num_warps)?;
        }
        if let Some(num_stages) = self.num_stages {
            kernel = kernel.stages(num_stages)?;
        }
        if let Some(num_ctas) = self.num_ctas {
            kernel = kernel.ctas(num_ctas)?;
        }
        if let Some(registers) = self.max_registers {
            kernel = kernel.max_registers(registers)?;
        }
        Ok(kernel)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self
            .constants
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        parts.extend(self.num_warps.map(|n| format!("num_warps={n}")));
        parts.extend(self.num_stages.map(|n| format!("num_stages={n}")));
        parts.extend(self.num_ctas.map(|n| format!("num_ctas={n}")));
        parts.extend(self.max_registers.map(|n| format!("maxnreg={n}")));
        if parts.is_empty() {
            return f.write_str("(as it is)");
        }
        f.write_str(&parts.join(" "))
    }
}

/// Constants as a map, in their order.
#[cfg(feature = "serde")]
mod data {
    use std::fmt;

    use serde::de::{Deserializer, Error, MapAccess, Visitor};
    use serde::ser::Serializer;

    use super::Constant;

    type List = Vec<(String, Constant)>;

    pub(super) fn serialize<S: Serializer>(list: &List, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(list.iter().map(|(name, value)| (name, value)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<List, D::Error> {
        from.deserialize_map(Map)
    }

    struct Map;

    impl<'de> Visitor<'de> for Map {
        type Value = List;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("constants by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List, A::Error> {
            let mut list = List::new();
            while let Some((name, value)) = map.next_entry::<String, Constant>()? {
                if list.iter().any(|(known, _)| *known == name) {
                    return Err(Error::custom(format!("the constant `{name}` twice")));
                }
                list.push((name, value));
            }
            Ok(list)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_constant_counts() {
        let config = Config::new().constant("A", 1).constant("B", 2);
        assert_eq!(config.constant("A", 3).to_string(), "A=3 B=2");
    }

    #[cfg(feature = "serde")]
    #[test]
    fn configurations_come_back_from_json() {
        for (config, json) in [
            (Config::new(), "{}"),
            (
                Config::new().constant("N", 128).constant("A", "x").warps(8),
                r#"{"constants":{"N":128,"A":"x"},"num_warps":8}"#,
            ),
            (
                Config::new().stages(3).ctas(2).registers(64),
                r#"{"num_stages":3,"num_ctas":2,"max_registers":64}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&config).expect("it is data"), json);
            let read: Config = serde_json::from_str(json).expect("as written");
            assert_eq!(read, config);
        }
        for (json, problem) in [
            (r#"{"warps":4}"#, "unknown field `warps`"),
            (r#"{"num_stages":300}"#, "300"),
            (r#"{"constants":{"N":1,"N":2}}"#, "the constant `N` twice"),
        ] {
            let read: Result<Config, _> = serde_json::from_str(json);
            let error = read.expect_err(json).to_string();
            assert!(error.contains(problem), "{json}: {error}");
        }
    }
}
