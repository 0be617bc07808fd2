//! Modules: loaded code, and the kernels in it.

use super::context::Context;
use super::error::{DriverError, check};
use super::ffi::{self, Handle};
use super::jit::{Jit, JitOptions, terminated};
use super::memory::RawPtr;
use core::ffi::{c_int, c_uint};
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared memory that a block gets without asking: 48 KB on every device.
pub(super) const SHARED_WITHOUT_ASKING: u32 = 48 << 10;

/// Loaded code. Clones share it; it is unloaded with the last one and the last [`Function`].
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    context: Context,
    raw: Handle,
    info_log: String,
}

impl Module {
    /// Assembles and loads `ptx`.
    ///
    /// # Errors
    ///
    /// [`DriverError::Assemble`] with the assembler's log; [`DriverError::PtxTooNew`] and
    /// [`DriverError::WrongTarget`] where driver or device cannot run such code.
    pub fn load(context: &Context, ptx: &str) -> Result<Module, DriverError> {
        Module::load_with(context, ptx, &JitOptions::default())
    }

    /// [`Module::load`] with options.
    ///
    /// # Errors
    ///
    /// Those of [`Module::load`].
    pub fn load_with(
        context: &Context,
        ptx: &str,
        options: &JitOptions,
    ) -> Result<Module, DriverError> {
        let text = terminated(ptx)?;
        let _current = context.enter()?;
        let mut jit = Jit::new(options);
        match jit.load(text.as_bytes_with_nul()) {
            Ok(raw) => Ok(Module::with(context, raw, jit.info_log())),
            Err(code) => Err(jit.refused(context, ptx, code)),
        }
    }

    /// Loads machine code, as [`assemble`](super::assemble) makes it.
    ///
    /// The driver is given an address without a length and trusts what the file says, so a file
    /// whose parts do not lie inside it is refused first. That finds cut files; contents are
    /// for the cache's checksum.
    ///
    /// # Errors
    ///
    /// [`DriverError::BadCubin`]; [`DriverError::WrongTarget`] for another device's code.
    pub fn load_cubin(context: &Context, cubin: &[u8]) -> Result<Module, DriverError> {
        whole_elf(cubin).map_err(|reason| DriverError::BadCubin { reason })?;
        let _current = context.enter()?;
        let mut jit = Jit::new(&JitOptions::default());
        match jit.load(cubin) {
            Ok(raw) => Ok(Module::with(context, raw, jit.info_log())),
            Err(ffi::NO_BINARY_FOR_GPU) => Err(DriverError::WrongTarget {
                target: "another device (a binary)".to_owned(),
                capability: context.device().capability,
            }),
            Err(code) => check("cuModuleLoadDataEx", code).and(Err(DriverError::BadCubin {
                reason: "the driver loaded nothing",
            })),
        }
    }

    fn with(context: &Context, raw: Handle, info_log: String) -> Module {
        Module {
            inner: Arc::new(Inner {
                context: context.clone(),
                raw,
                info_log,
            }),
        }
    }

    /// The module's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// Whether both are the same loaded code.
    pub(super) fn same(&self, other: &Module) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// What the assembler wrote beside errors, see [`JitOptions::verbose`].
    #[must_use]
    pub fn info_log(&self) -> &str {
        &self.inner.info_log
    }

    /// The variable with this name; none if the module has no such variable.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn global(&self, name: &str) -> Result<Option<RawPtr<'_>>, DriverError> {
        let symbol = CString::new(name).map_err(|_| DriverError::Nul {
            what: "the variable's name",
        })?;
        let _current = self.inner.context.enter()?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module is alive; the name ends in NUL; writes an address and a size.
        let code = unsafe {
            let (address, bytes) = (&raw mut address, &raw mut bytes);
            ffi::cuModuleGetGlobal_v2(address, bytes, self.inner.raw, symbol.as_ptr())
        };
        if code == ffi::NOT_FOUND {
            return Ok(None);
        }
        check("cuModuleGetGlobal", code)?;
        // SAFETY: the variable lives as long as the module, which the result borrows.
        Ok(Some(unsafe { RawPtr::from_raw(address, bytes) }))
    }

    /// The kernel with this name.
    ///
    /// # Errors
    ///
    /// [`DriverError::NoFunction`].
    pub fn function(&self, name: &str) -> Result<Function, DriverError> {
        let symbol = CString::new(name).map_err(|_| DriverError::Nul {
            what: "the kernel's name",
        })?;
        let _current = self.inner.context.enter()?;
        let mut raw = 0;
        // SAFETY: the module is alive; the name ends in NUL; writes one handle.
        let code =
            unsafe { ffi::cuModuleGetFunction(&raw mut raw, self.inner.raw, symbol.as_ptr()) };
        if code == ffi::NOT_FOUND {
            return Err(DriverError::NoFunction {
                name: name.to_owned(),
            });
        }
        check("cuModuleGetFunction", code)?;
        // The numbers are those of `CUfunction_attribute`.
        Ok(Function {
            module: self.clone(),
            raw,
            name: name.to_owned(),
            attributes: Attributes {
                max_threads: attribute(raw, 0)?,
                static_shared: attribute(raw, 1)?,
                local_bytes: attribute(raw, 3)?,
                registers: attribute(raw, 4)?,
            },
            shared_asked: AtomicBool::new(false),
            wide_cluster_asked: AtomicBool::new(false),
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: loaded by this module's constructors, and no function of it is left. The
            // driver waits for kernels under way.
            let _ = unsafe { ffi::cuModuleUnload(self.raw) };
        }
    }
}

/// What the assembler made of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes {
    /// 32-bit registers a thread.
    pub registers: u32,
    /// Bytes of local memory a thread: arrays and spilled registers.
    pub local_bytes: u32,
    /// Bytes of static shared memory a block.
    pub static_shared: u32,
    /// Threads a block can have, given the registers.
    pub max_threads: u32,
}

/// A kernel, ready to [`launch`](super::launch()). It keeps its module loaded.
#[derive(Debug)]
pub struct Function {
    module: Module,
    raw: Handle,
    name: String,
    attributes: Attributes,
    /// Whether the driver was asked for more than 48 KB of shared memory.
    shared_asked: AtomicBool,
    /// Whether the driver was asked to allow clusters of more than 8 blocks.
    wide_cluster_asked: AtomicBool,
}

impl Function {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Registers, local and shared memory.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// The handle.
    pub(super) fn raw(&self) -> Handle {
        self.raw
    }

    /// How many blocks of so many threads and bytes of dynamic shared memory are resident on a
    /// multiprocessor at once.
    ///
    /// # Errors
    ///
    /// [`DriverError::SharedMemory`] if not even one can be.
    pub fn blocks_per_multiprocessor(&self, threads: u32, shared: u32) -> Result<u32, DriverError> {
        let _current = self.module.context().enter()?;
        self.allow_shared(shared)?;
        let mut blocks = 0;
        // SAFETY: the function is alive; writes one integer.
        let code = unsafe {
            ffi::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.raw,
                c_int::try_from(threads).unwrap_or(c_int::MAX),
                shared as usize,
            )
        };
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Sees to it that the kernel may be launched with `dynamic` bytes of shared memory; the
    /// context is current.
    ///
    /// Above 48 KB the driver wants to be asked. It is asked once, for all that the kernel can
    /// have, so that launches of different sizes, and other handles of the same kernel, do not
    /// take it from one another.
    pub(super) fn allow_shared(&self, dynamic: u32) -> Result<(), DriverError> {
        /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
        const MAX_DYNAMIC: c_uint = 8;
        /// `CU_FUNC_CACHE_PREFER_SHARED`.
        const PREFER_SHARED: c_uint = 1;
        let fixed = self.attributes.static_shared;
        let needed = fixed.saturating_add(dynamic);
        if needed <= SHARED_WITHOUT_ASKING {
            return Ok(());
        }
        let limit = self.module.context().device().shared_per_block;
        if needed > limit {
            return Err(DriverError::SharedMemory {
                name: self.name.clone(),
                needed,
                dynamic,
                limit,
            });
        }
        if self.shared_asked.load(Ordering::Acquire) {
            return Ok(());
        }
        // SAFETY: the function is alive; takes an enumerator. A preference only.
        let code = unsafe { ffi::cuFuncSetCacheConfig(self.raw, PREFER_SHARED) };
        check("cuFuncSetCacheConfig", code)?;
        let most = c_int::try_from(limit - fixed).unwrap_or(c_int::MAX);
        // SAFETY: the function is alive; takes a number.
        let code = unsafe { ffi::cuFuncSetAttribute(self.raw, MAX_DYNAMIC, most) };
        check("cuFuncSetAttribute", code)?;
        self.shared_asked.store(true, Ordering::Release);
        Ok(())
    }

    /// Sees to it that the kernel may be launched in clusters of so many blocks; the context is
    /// current. Eight are portable, more have to be asked for.
    pub(super) fn allow_cluster(&self, blocks: u64) -> Result<(), DriverError> {
        /// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
        const NON_PORTABLE: c_uint = 14;
        if blocks <= 8 || self.wide_cluster_asked.load(Ordering::Acquire) {
            return Ok(());
        }
        // SAFETY: the function is alive; takes a number.
        let code = unsafe { ffi::cuFuncSetAttribute(self.raw, NON_PORTABLE, 1) };
        check("cuFuncSetAttribute", code)?;
        self.wide_cluster_asked.store(true, Ordering::Release);
        Ok(())
    }
}

/// An attribute of a function; none that is asked for can be negative.
fn attribute(raw: Handle, which: c_uint) -> Result<u32, DriverError> {
    let mut value = 0;
    // SAFETY: the function is alive; writes one integer.
    let code = unsafe { ffi::cuFuncGetAttribute(&raw mut value, which, raw) };
    check("cuFuncGetAttribute", code)?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Whether headers and sections of a 64-bit little-endian ELF file lie inside it.
///
/// Offsets are those of the ELF-64 object file format.
fn whole_elf(file: &[u8]) -> Result<(), &'static str> {
    /// `SHT_NOBITS`: a section without bytes in the file.
    const NOBITS: u64 = 8;
    let number = |at: u64, bytes: u64| -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let field = file.get(at..at.checked_add(bytes as usize)?)?;
        let mut wide = [0; 8];
        wide[..field.len()].copy_from_slice(field);
        Some(u64::from_le_bytes(wide))
    };
    let inside = |at: u64, bytes: u64| {
        at.checked_add(bytes)
            .is_some_and(|end| end <= file.len() as u64)
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return Err("it does not begin as a 64-bit ELF file does");
    }
    let table = |offset: u64, size: u64, count: u64| {
        let (offset, size, count) = (number(offset, 8)?, number(size, 2)?, number(count, 2)?);
        inside(offset, size * count).then_some((offset, size, count))
    };
    table(0x20, 0x36, 0x38).ok_or("its program headers lie outside the file")?;
    let (offset, size, count) =
        table(0x28, 0x3a, 0x3c).ok_or("its section headers lie outside the file")?;
    if count > 0 && size < 64 {
        return Err("its section headers are too small");
    }
    for header in (0..count).map(|index| offset + index * size) {
        let section = number(header + 4, 4)
            .zip(number(header + 0x18, 8))
            .zip(number(header + 0x20, 8));
        let Some(((kind, at), bytes)) = section else {
            return Err("a section header lies outside the file");
        };
        if kind != NOBITS && !inside(at, bytes) {
            return Err("a section lies outside the file");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::whole_elf;

    /// A file with one section of 16 bytes behind the header and the section table at the end.
    fn elf() -> Vec<u8> {
        let mut file = vec![0; 64 + 16 + 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x28] = 80; // section headers
        file[0x3a] = 64; // their size
        file[0x3c] = 1; // their number
        file[80 + 4] = 1; // kind: bits
        file[80 + 0x18] = 64; // offset
        file[80 + 0x20] = 16; // size
        file
    }

    #[test]
    fn cut_files_are_refused() {
        let file = elf();
        assert_eq!(whole_elf(&file), Ok(()));
        for length in 0..file.len() {
            assert!(whole_elf(&file[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn damaged_headers_are_refused() {
        for (at, byte, reason) in [
            (1, b'F', "it does not begin as a 64-bit ELF file does"),
            (0x2f, 0xff, "its section headers lie outside the file"),
            (0x3a, 32, "its section headers are too small"),
            (80 + 0x1f, 0xff, "a section lies outside the file"),
            (80 + 0x21, 1, "a section lies outside the file"),
        ] {
            let mut file = elf();
            file[at] = byte;
            assert_eq!(whole_elf(&file), Err(reason), "byte {at}");
        }
    }
}
