# Bessel's functions and `rcp64h` of libdevice.
#
# run: simple "*fp32, *fp32" F=@libdevice.j0 : grid(1) out=f32[8] poison x=f32[8] [0,-0.0,0.7,2.4048254,-5.5,30.25,inf,nan] ; expect out = [1,1,0.8812009,5.64344e-08,-0.0068438696,-0.05443267,0,nan] ; expect out within ulp 8
# run: simple "*fp64, *fp64" F=@libdevice.j0 : grid(1) out=f64[8] poison x=f64[8] [0,-0.0,0.7,2.404825557695773,-5.5,30.25,inf,nan] ; expect out = [1,1,0.8812008886074053,-6.10876525973673e-17,-0.006843869417819197,-0.05443267228961778,0,nan] ; expect out within ulp 8
# run: simple "*fp32, *fp32" F=@libdevice.j1 : grid(1) out=f32[8] poison x=f32[8] [-0.0,1e-30,-1.5,3.831706,7.25,-1e+06,-inf,nan] ; expect out = [-0.0,5e-31,-0.5579365,-3.0952297e-08,0.0685817,0.00072596833,-0.0,nan] ; expect out within ulp 8
# run: simple "*fp64, *fp64" F=@libdevice.j1 : grid(1) out=f64[8] poison x=f64[8] [-0.0,1e-30,-1.5,3.8317059702075125,7.25,-1000000,-inf,nan] ; expect out = [-0.0,5e-31,-0.5579365079100996,-6.149807356994906e-17,0.06858170065313174,0.000725968356813763,-0.0,nan] ; expect out within ulp 8
# run: simple "*fp32, *fp32" F=@libdevice.y0 : grid(1) out=f32[8] poison x=f32[8] [0,1e-30,0.893577,3.5,7,1e+06,inf,-1] ; expect out = [-inf,-44.049942,1.1747284e-08,0.18902194,-0.025949745,-0.0007259685,0,nan] ; expect out within ulp 8
# run: simple "*fp64, *fp64" F=@libdevice.y0 : grid(1) out=f64[8] poison x=f64[8] [0,1e-30,0.8935769662791675,3.5,7,1000000,inf,-1] ; expect out = [-inf,-44.04994022787435,-2.3389279284062102e-17,0.1890219439208265,-0.025949743967209265,-0.0007259685223351791,0,nan] ; expect out within ulp 8
# run: simple "*fp32, *fp32" F=@libdevice.y1 : grid(1) out=f32[8] poison x=f32[8] [0,1e-30,2.1971414,3.5,5.5,1e+06,inf,nan] ; expect out = [-inf,-6.366198e+29,4.3167606e-08,0.4101884,-0.023758238,-0.00033104338,0,nan] ; expect out within ulp 8
# run: simple "*fp64, *fp64" F=@libdevice.y1 : grid(1) out=f64[8] poison x=f64[8] [0,1e-30,2.197141326031017,3.5,5.5,1000000,inf,nan] ; expect out = [-inf,-6.366197723675812e+29,2.513306678922122e-17,0.41018841788751187,-0.023758238956389618,-0.00033104337672417626,0,nan] ; expect out within ulp 8
# run: simple "*fp32, *fp32" F=@libdevice.cyl_bessel_i0 : grid(1) out=f32[8] poison x=f32[8] [0,1e-30,-0.5,7.75,8.25,-91,-inf,nan] ; expect out = [1,1,1.0634834,338.51376,540.3251,1.3892714e+38,inf,nan] ; expect out within ulp 8
# run: simple "*fp64, *fp64" F=@libdevice.cyl_bessel_i0 : grid(1) out=f64[8] poison x=f64[8] [0,1e-30,-0.5,7.75,8.25,-91,-inf,nan] ; expect out = [1,1,1.0634833707413236,338.5137537472759,540.325079074807,1.3892714060989622e+38,inf,nan] ; expect out within ulp 8
# run: simple "*fp32, *fp32" F=@libdevice.cyl_bessel_i1 : grid(1) out=f32[8] poison x=f32[8] [-0.0,1e-30,-0.5,7.75,8.25,-91,-inf,nan] ; expect out = [-0.0,5e-31,-0.2578943,315.85248,506.43384,-1.3816169e+38,-inf,nan] ; expect out within ulp 8
# run: simple "*fp64, *fp64" F=@libdevice.cyl_bessel_i1 : grid(1) out=f64[8] poison x=f64[8] [-0.0,1e-30,-0.5,7.75,8.25,-91,-inf,nan] ; expect out = [-0.0,5e-31,-0.2578943053908963,315.85248092400343,506.4338383076455,-1.3816168414593216e+38,-inf,nan] ; expect out within ulp 8
# run: ordered "*fp32, *i32, *fp32" F=@libdevice.jn : grid(1) out=f32[8] poison n=i32[8] [0,1,2,3,128,20,5,-1] x=f32[8] [-2.5,-2.5,1e-10,-0.25,100,1e+06,inf,1] ; expect out = [-0.048383776,-0.4970941,1.2500001e-21,-0.00032425125,4.5943874e-08,0.0003311882,0,nan] ; expect out within ulp 1
# run: ordered "*fp64, *i32, *fp64" F=@libdevice.jn : grid(1) out=f64[8] poison n=i32[8] [0,1,2,3,128,20,5,-1] x=f64[8] [-2.5,-2.5,1e-10,-0.25,100,1000000,inf,1] ; expect out = [-0.048383776468198,-0.49709410246427405,1.2500000000000001e-21,-0.00032425125267590815,4.594387411336511e-08,0.00033118820085563616,0,nan] ; expect out within ulp 64
# run: ordered "*fp32, *i32, *fp32" F=@libdevice.yn : grid(1) out=f32[8] poison n=i32[8] [0,1,2,3,128,20,5,-1] x=f32[8] [2.5,2.5,1e-10,0.25,100,1e+06,0,1] ; expect out = [0.49807036,0.14591813,-1.2732395e+20,-328.5162,-86743.12,-0.0007259023,-inf,nan] ; expect out within ulp 1
# run: ordered "*fp64, *i32, *fp64" F=@libdevice.yn : grid(1) out=f64[8] poison n=i32[8] [0,1,2,3,128,20,5,-1] x=f64[8] [2.5,2.5,1e-10,0.25,100,1000000,0,1] ; expect out = [0.4980703596152319,0.1459181379667858,-1.2732395447351625e+20,-328.51619572415996,-86743.11774971377,-0.0007259022992860902,-inf,nan] ; expect out within ulp 64
#
# Numbers in place of blocks, several orders of a number, an order for all of a block, and blocks of two dimensions.
# run: scalars "*fp64, fp64, i32" : grid(1) out=f64[3] poison x=2.5 n=3 ; expect out = [0.21660039103911352,-0.756055496753671,2.5167162452886984] ; expect out within ulp 8
# run: orders "*fp64, fp64" : grid(1) out=f64[8] poison x=2.5 ; expect out = [-0.048383776468198,0.49709410246427405,0.44605905843961724,0.21660039103911352,0.4980703596152319,0.1459181379667858,-0.38133584924180325,-0.756055496753671] ; expect out within ulp 8
# run: shapes "*fp32, *fp32, i32" : grid(1) out=f32[8] poison x=f32[8] [0.5,1,2,3,5,8,13,21] n=6 ; expect out = [3.3606847e-07,2.0938338e-05,0.001202429,0.011393933,0.36766288,-0.2630366,0.04588765,-0.17330073] ; expect out within ulp 1
#
# What is tiny beyond the range of the type, and what is too large.
# run: ordered "*fp64, *i32, *fp64" F=@libdevice.jn : grid(1) out=f64[8] poison n=i32[8] [2,3,500,1000000,40,430,2,7] x=f64[8] [1e-155,1e-105,2,1,1e-8,50,1e300,0] ; expect out = [1.25e-311,2.0833335e-317,0,0,0,0,7.860673062724093e-151,0] ; expect out within ulp 64
# run: ordered "*fp64, *i32, *fp64" F=@libdevice.yn : grid(1) out=f64[8] poison n=i32[8] [2,3,500,1000000,40,430,2,7] x=f64[8] [1e-155,1e-105,2,1,1e-8,50,1e300,-1] ; expect out = [-inf,-inf,-inf,-inf,-inf,-inf,1.3681360450342481e-151,nan] ; expect out within ulp 64
#
# Of the upper word of the number, to the upper word; what is subnormal counts as zero.
# run: simple "*fp64, *fp64" F=@libdevice.rcp64h : grid(1) out=f64[8] poison x=f64[8] [3,-0.1,1.0000000001,1e-310,-0.0,1.7e308,-inf,nan] ; expect out = [0.3333333333333333,-10,1,inf,-inf,0,-0.0,nan] ; expect out within rel 1e-6
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def simple(out, x, F: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(out + i, F(tl.load(x + i)))


@triton.jit
def ordered(out, n, x, F: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(out + i, F(tl.load(n + i), tl.load(x + i)))


@triton.jit
def scalars(out, x, n):
    tl.store(out, libdevice.jn(n, x))
    tl.store(out + 1, libdevice.yn(3, x))
    tl.store(out + 2, libdevice.cyl_bessel_i1(x))


@triton.jit
def orders(out, x):
    n = tl.arange(0, 4)
    tl.store(out + n, libdevice.jn(n, x))
    tl.store(out + 4 + n, libdevice.yn(n.to(tl.int64), x))


@triton.jit
def shapes(out, x, n):
    i = tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
    v = tl.load(x + i)
    tl.store(out + i, tl.where(i < 4, libdevice.jn(n, v), libdevice.yn(2, v)))
