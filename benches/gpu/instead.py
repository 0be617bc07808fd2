"""A program that launches Triton's kernels, as it stands, with Tilelift's code in place of Triton's.

usage: instead.py TILELIFT PROGRAM.py [ARGUMENT ..]
       instead.py TILELIFT -m MODULE [ARGUMENT ..]     as in: instead.py target/release/tilelift -m pytest tests

Triton binds the arguments and says what each promises; nothing of Triton compiles. What a launch returns has `asm` with the PTX,
`n_regs`, `n_spills` and `metadata`. A kernel that Tilelift does not compile raises Triton's `CompilationError` with Tilelift's message.
Launches that only warm up compile and do not launch.
"""
import hashlib
import sys
from types import SimpleNamespace

import beside
import torch
from sources import source
from triton import knobs
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction

DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None, "debug": False}
known = {}


class Refused(CompilationError):
    """A kernel that Tilelift does not compile."""

    def __init__(self, message):
        Exception.__init__(self, message)
        self.error_message = message

    def __str__(self):
        return self.error_message


class Launched:
    """What a launch returns."""

    def __init__(self, kernel, options):
        self.asm = {"ptx": kernel.text}
        self.n_regs, self.n_spills, self.name = kernel.registers, kernel.local_bytes, kernel.meta["name"]
        self.hash = hashlib.sha256(kernel.text.encode()).hexdigest()
        self.metadata = SimpleNamespace(name=self.name, shared=kernel.meta["shared"], **vars(options))


def run(jit, *args, grid, warmup, **kwargs):
    """In place of Triton's own."""
    named = {**kwargs, "debug": kwargs.get("debug", jit.debug) or False, "instrumentation_mode": ""}
    for hook in jit.pre_run_hooks:
        hook(*args, **kwargs)
    arguments, specialization, _ = jit.device_caches[torch.cuda.current_device()][4](*args, **named)
    defaults = {**DEFAULTS, "enable_fp_fusion": knobs.language.default_fp_fusion}
    options = SimpleNamespace(**{name: named.get(name, default) for name, default in defaults.items()})
    given = []
    spelled = [beside.entry(kind, promise, value, given) for (kind, promise), value in zip(specialization, arguments.values(), strict=True)]
    signature = ", ".join(spelled)
    text = source(jit, beside.called_by_name(arguments.values()))
    key = (text, signature, *vars(options).values())
    if key not in known:
        try:
            known[key] = beside.compiled(beside.TILELIFT, text, jit, signature, options)
        except beside.Uncompiled as refused:
            raise Refused(str(refused)) from refused
        except RuntimeError as problem:
            raise RuntimeError(f"{jit.fn.__name__}({signature}) {options}: {problem}") from None
    kernel, launch = known[key][0], None
    if not warmup:
        kernel, launch = beside.bound(known[key], grid(arguments) if callable(grid) else grid, given)
        launch()
    return Launched(kernel, options)


def main():
    if not beside.TILELIFT:
        sys.exit(__doc__)
    JITFunction.run = run
    beside.start_program()


if __name__ == "__main__":
    main()
