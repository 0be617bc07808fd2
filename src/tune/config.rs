//! Configurations: what the autotuner chooses among.

use std::fmt;

use crate::runtime::{Constant, Kernel, RuntimeError};

/// A way to set up a kernel. What it does not say stays as the kernel has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Constants by name.
    pub constants: Vec<(String, Constant)>,
    /// Warps of a program.
    pub num_warps: Option<u32>,
    /// Stages of loops.
    pub num_stages: Option<u8>,
    /// CTAs of a program, see [`Kernel::ctas`].
    pub num_ctas: Option<u32>,
    /// Most registers of a thread.
    pub max_registers: Option<u16>,
}

impl Config {
    /// The kernel as it is.
    pub fn new() -> Config {
        Config::default()
    }

    /// With a constant.
    #[must_use]
    pub fn constant(mut self, name: &str, value: impl Into<Constant>) -> Config {
        self.constants.push((name.to_owned(), value.into()));
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
