"""A program that launches Triton's kernels, or has PyTorch write some (`torch.compile`), as it stands, with Tilelift's code in place of
Triton's.

usage: instead.py TILELIFT PROGRAM.py [ARGUMENT ..]
       instead.py TILELIFT -m MODULE [ARGUMENT ..]     as in: instead.py target/release/tilelift -m pytest tests

Triton binds the arguments and says what each promises; nothing of Triton compiles. What a launch returns has `asm` with the PTX,
`n_regs`, `n_spills` and `metadata`, and can be launched again with other arguments of the same kinds. A kernel that Tilelift does not compile
raises Triton's `CompilationError` with Tilelift's message, and `CompileTimeAssertionFailure` where an assertion of its own fails.
Launches that only warm up compile and do not launch.

Kernels that PyTorch writes are launched as PyTorch launches them: they come as machine code of ptxas, without tensor maps and with a CTA
for each program. PyTorch is asked to compile in this process. KEPT names a folder for the texts of these kernels, each with its options.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import beside
import torch
import triton
from sources import name_of, source
from triton import knobs
from triton.compiler import compiler
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
from triton.runtime.cache import get_cache_manager
from triton.runtime.jit import JITFunction

DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None, "debug": False, "sanitize_overflow": True}
known = {}
KEPT = Path(os.environ["KEPT"]) if "KEPT" in os.environ else None
# What a launcher asks of a kernel beyond Triton's options.
NO_SCRATCH = {"global_scratch_size": 0, "global_scratch_align": 1, "profile_scratch_size": 0, "profile_scratch_align": 1, "tmem_size": 0}


class Refused(CompilationError):
    """A kernel that Tilelift does not compile."""

    def __init__(self, message):
        Exception.__init__(self, message)
        self.error_message = message

    def __str__(self):
        return self.error_message


class Failed(Refused, CompileTimeAssertionFailure):
    """A kernel that says itself that it is none; an autotuner goes on with the next configuration."""


def refusal(reason):
    """What Triton raises for the same reason."""
    return (Failed if "static assertion failed" in str(reason) else Refused)(str(reason))


class Launched:
    """What a launch returns, to be launched again with arguments of the same kinds, with or without constants among them."""

    def __init__(self, jit, kernels, kernel, options, specialization, values):
        self.kernels, self.specialization = kernels, specialization
        self.constants = [(param.is_constexpr, value if param.is_constexpr else None) for param, value in zip(jit.params, values, strict=True)]
        self.asm = {"ptx": kernel.text}
        self.n_regs, self.n_spills, self.name = kernel.registers, kernel.local_bytes, kernel.meta["name"]
        self.hash = hashlib.sha256(kernel.text.encode()).hexdigest()
        self.metadata = SimpleNamespace(name=self.name, shared=kernel.meta["shared"], **vars(options))

    def __getitem__(self, grid):
        def launch(*args):
            rest = iter(args)
            is_whole = len(args) == len(self.constants)
            values = [next(rest) if is_whole or not is_constant else value for is_constant, value in self.constants]
            beside.bound(self.kernels, grid, spelled(self.specialization, values)[1])[1]()
        return launch


def spelled(specialization, values):
    """The signature's entries of arguments, and what is passed at launch."""
    given = []
    return [beside.entry(kind, promise, value, given) for (kind, promise), value in zip(specialization, values, strict=True)], given


def run(jit, *args, grid, warmup, **kwargs):
    """In place of Triton's own."""
    named = {**kwargs, "debug": kwargs.get("debug", jit.debug) or False, "instrumentation_mode": ""}
    for hook in jit.pre_run_hooks:
        hook(*args, **kwargs)
    arguments, specialization, _ = jit.device_caches[torch.cuda.current_device()][4](*args, **named)
    defaults = {**DEFAULTS, "enable_fp_fusion": knobs.language.default_fp_fusion}
    options = SimpleNamespace(**{name: named.get(name, default) for name, default in defaults.items()})
    entries, given = spelled(specialization, arguments.values())
    signature = ", ".join(entries)
    text = source(jit, beside.called_by_name(arguments.values()))
    key = (text, signature, *vars(options).values())
    if key not in known:
        try:
            known[key] = beside.compiled(beside.TILELIFT, text, jit, signature, options)
        except beside.Uncompiled as refused:
            raise refusal(refused) from refused
        except RuntimeError as problem:
            raise RuntimeError(f"{jit.fn.__name__}({signature}) {options}: {problem}") from None
    kernel, launch = known[key][0], None
    if not warmup:
        kernel, launch = beside.bound(known[key], grid(arguments) if callable(grid) else grid, given)
        launch()
    return Launched(jit, known[key], kernel, options, specialization, arguments.values())


def compile_source(src, target=None, options=None, _env_vars=None):
    """In place of Triton's own compiler: a kernel for launchers of others."""
    target = target or triton.runtime.driver.active.get_current_target()
    options = compiler.make_backend(target).parse_options(dict(options or {}))
    text = source(src.fn, beside.called_by_name(src.constants.values()))
    entries = []
    for i, (name, kind) in enumerate(src.signature.items()):
        value = src.constants.get((i,))
        # PyTorch promises multiples of 16 of floats, too.
        promise = "D" if kind[:2] not in ("fp", "bf") and ["tt.divisibility", 16] in map(list, src.attrs.get((i,), [])) else ""
        entries.append(beside.entry("constexpr" if (i,) in src.constants else kind, promise, value, []))
    signature = ", ".join(entries)
    flags = ["--promote", "never", "--persistent", "never"]
    key = hashlib.sha256(repr(("tilelift", beside.TILELIFT, text, signature, options)).encode()).hexdigest()
    cache, name = get_cache_manager(key), name_of(src.fn)
    if not (group := cache.get_group(f"{name}.json")):
        if KEPT:
            about = f"# {signature}\n# {options.num_warps} {options.num_stages} {options.enable_fp_fusion} {options.debug}\n"
            Path(KEPT, f"{name}-{key[:12]}.py").write_text(about + text)
        try:
            ptx, facts = beside.written(beside.TILELIFT, text, src.fn, signature, options, *flags)[-1]
        except beside.Uncompiled as refused:
            raise refusal(refused) from refused
        own = {"name": facts["name"], "shared": facts["shared"], "num_warps": facts["block"][0] // 32}
        metadata = {**vars(options), **NO_SCRATCH, **own, "hash": key, "target": target}
        files = {f"{name}.ptx": ptx, f"{name}.cubin": assembled(ptx, target.arch), f"{name}.json": json.dumps(metadata, default=vars)}
        group = {file: cache.put(data, file, binary=isinstance(data, bytes)) for file, data in files.items()}
        cache.put_group(f"{name}.json", group)
    return compiler.CompiledKernel(src, group, key)


def assembled(ptx, arch):
    """Machine code, by Triton's ptxas."""
    with tempfile.TemporaryDirectory() as folder:
        text, code = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        text.write_text(ptx)
        command = [knobs.nvidia.ptxas.path, f"-arch=sm_{arch}{'a' if arch >= 90 else ''}", text, "-o", code]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"ptxas: {done.stderr}")
        return code.read_bytes()


def main():
    if not beside.TILELIFT:
        sys.exit(__doc__)
    JITFunction.run = run
    triton.compile = triton.compiler.compile = compiler.compile = compile_source
    beside.start_program()


if __name__ == "__main__":
    main()
