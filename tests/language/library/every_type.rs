//! Each function of the library with blocks of each type: it compiles, or a message says why not; never is the compiler
//! itself wrong.

use tilelift::compile::compile;
use tilelift::front::diagnostic::Code;
use tilelift::front::types::DType;
use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::settings::{Options, Target};

/// Expressions of blocks `v` and `w` of 4 rows and 8 columns and of scalars `s` and `t` of the type, of `p`, pointers to such
/// elements, and of the numbers `i` in the same shape.
const EXPRESSIONS: &[&str] = &[
    "v + w",
    "v - s",
    "v * 2",
    "v / w",
    "v // w",
    "v % w",
    "v & w",
    "v << 1",
    "v >> w",
    "-v",
    "~v",
    "not v",
    "v < w",
    "v != 0",
    "v and w",
    "v.to(tl.float32)",
    "v.to(tl.int8)",
    "v.to(tl.int1)",
    "v.to(tl.bfloat16)",
    "v.to(tl.float8e5)",
    "v.to(tl.float8e4b15)",
    "v.to(tl.uint64)",
    "tl.where(i > 3, v, w)",
    "tl.where(v, w, s)",
    "tl.maximum(v, w)",
    "tl.minimum(s, 1)",
    "tl.clamp(v, s, t)",
    "tl.abs(v)",
    "tl.exp(v)",
    "tl.sigmoid(v)",
    "tl.softmax(v)",
    "tl.fma(v, w, s)",
    "tl.fdiv(v, w)",
    "tl.cdiv(v, 3)",
    "tl.umulhi(v, w)",
    "tl.sum(v, 1)",
    "tl.sum(v)",
    "tl.max(v, 0)",
    "tl.min(v)",
    "tl.max(v, 1, return_indices=True)[1]",
    "tl.min(v, 0, return_indices=True)[0]",
    "tl.argmin(v, 0)",
    "tl.xor_sum(v, 1)",
    "tl.reduce_or(v, 0)",
    "tl.reduce(v, 1, first)",
    "tl.associative_scan(v, 1, first)",
    "tl.cumsum(v, 0)",
    "tl.cumprod(v, 1, reverse=True)",
    "tl.sort(v)",
    "tl.topk(v, 2)",
    "tl.bitonic_merge(v)",
    "tl.flip(v, 0)",
    "tl.histogram(v.ravel(), 8)",
    "tl.histogram(v.ravel(), 256, mask=i.ravel() > 3)",
    "tl.gather(v, i % 8, 1)",
    "tl.gather(i, v, 0)",
    "tl.join(v, w)",
    "tl.split(v.reshape(4, 4, 2))[0]",
    "tl.interleave(v, w)",
    "tl.cat(v, w, dim=1)",
    "tl.trans(v)",
    "v.reshape(2, 16)",
    "v[None, :, :].broadcast_to(2, 4, 8)",
    "v.sum(keep_dims=True).item()",
    "tl.dot(v.reshape(1, 32), w.reshape(32, 1))",
    "tl.dot(v.to(tl.float16).reshape(1, 32), w.to(tl.float16).reshape(32, 1))",
    "tl.dot_scaled(v.reshape(1, 32), None, 'e2m1', w.reshape(32, 1), None, 'e2m1')",
    "tl.dot_scaled(v.reshape(1, 32), None, 'e4m3', w.reshape(32, 1), None, 'e5m2')",
    "tl.atomic_add(p + i, v)",
    "tl.atomic_max(p + i, v, mask=i > 3)",
    "tl.atomic_and(p, s)",
    "tl.atomic_xchg(p + i, w)",
    "tl.atomic_cas(p + i, v, w)",
    "tl.load(p + i, mask=i > 3, other=s)",
    "tl.load(tl.make_block_ptr(p, (4, 8), (8, 1), (1, 1), (4, 8), (1, 0)), boundary_check=(0,), padding_option='nan')",
    "tl.make_tensor_descriptor(p, [4, 8], [8, 1], [4, 8], padding_option='nan').load([1, 0])",
    "tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [v], dtype=v.dtype, is_pure=True, pack=1)",
    "tl.rand(s, i)",
    "tl.randint(7, v)",
    "tl.full((4, 8), s, v.dtype)",
    "tl.zeros_like(v)",
    "tl.multiple_of(v, (1, 1))",
    "p + v",
    "libdevice.pow(v, w)",
    "libdevice.isnan(v)",
    "libdevice.signbit(v)",
    "libdevice.nextafter(v, w)",
    "libdevice.ldexp(v, i)",
    "libdevice.ilogb(v)",
    "libdevice.lgamma(v)",
    "libdevice.remainder(v, w)",
    "libdevice.ffs(v)",
    "libdevice.popc(v)",
    "libdevice.brev(v)",
    "libdevice.mulhi(v, w)",
    "libdevice.mul24(v, w)",
    "libdevice.byte_perm(v, w, v)",
    "libdevice.hadd(v, w)",
    "libdevice.add_rz(v, w)",
    "libdevice.div_ru(v, s)",
    "libdevice.fma_rd(v, w, s)",
    "libdevice.float2int_rd(v)",
    "libdevice.ll2float_rz(v)",
    "libdevice.int2float_ru(v)",
    "libdevice.float_as_int(v)",
    "libdevice.llrint(v)",
    "libdevice.fast_powf(v, w)",
    "libdevice.norm3d(v, w, v)",
    "libdevice.hiloint2double(v, w)",
];

fn program() -> String {
    let mut text = "import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def first(a, b):
    return a
"
    .to_owned();
    for (n, expression) in EXPRESSIONS.iter().enumerate() {
        text += &format!(
            "
@triton.jit
def probe{n}(p, q):
    i = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
    v, w = tl.load(q + i), tl.load(q + 32 + i)
    s, t = tl.load(q), tl.load(q + 1)
    r = {expression}
    tl.device_print(\"r\", r)
"
        );
    }
    text
}

/// What is wrong with the compiler, if it is.
fn problem(module: &Module, kernel: usize, dtype: DType, target: Target) -> Option<String> {
    let name = dtype.short_name();
    let args = parse_signature(&format!("*{name}, *{name}")).expect("a signature");
    let kernel = format!("probe{kernel}");
    match module.lower(Some(&kernel), &Specialization::new(args, target)) {
        Err(messages) => {
            let internal = messages.list.iter().find(|d| d.code == Code::Internal);
            internal.map(|d| d.message.clone())
        }
        Ok(lowered) => {
            let options = Options {
                verify_passes: true,
                ..Options::DEFAULT
            };
            let compiled = compile(&lowered.func, target, &options);
            compiled.err().map(|e| e.to_string())
        }
    }
}

#[test]
fn functions_of_every_type_compile_or_say_why_not() {
    let text = program();
    let module = Module::parse("every.py", &text).expect("Python");
    let mut wrong = Vec::new();
    for &dtype in DType::ALL {
        // What only later targets have is asked of one of them.
        let target = match dtype {
            DType::Float8e4nv => Target::SM_90,
            _ => Target::SM_80,
        };
        for (n, expression) in EXPRESSIONS.iter().enumerate() {
            if let Some(problem) = problem(&module, n, dtype, target) {
                let problem: String = problem.chars().take(300).collect();
                wrong.push(format!("{expression} of {dtype}: {problem}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
