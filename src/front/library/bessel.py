# Bessel's functions, and the reciprocal of a number's upper word.
#
# Near zero a polynomial of the square; about the zeros below 8 a polynomial times the distance from the zero, which is
# held in two parts, so that the relative error is small next to it too; beyond, Hankel's expansion: M. Abramowitz and
# I. Stegun, "Handbook of Mathematical Functions", 1964, 9.2.5 to 9.2.10. The coefficients are ours: polynomials
# through the function at Chebyshev's nodes, computed with 60 digits. Measured, J0, J1, Y0 and Y1 are within 5 ulp below
# 8 (f32 and f64), and beyond within 1e-7 (f32) and 2e-16 (f64).


@jit
def _powers(t, wide, narrow):
    # A polynomial by Horner's scheme: coefficients from the highest power down, those of f64 and of f32.
    c: constexpr = wide if t.dtype.is_fp64() else narrow
    s = full((), c[0], t.dtype)
    for i in static_range(1, len(c)):
        s = fma(s, t, full((), c[i], t.dtype))
    return s


@jit
def _from_zero(x, wide, narrow):
    # The distance from a zero: its first part is subtracted without an error where that matters.
    parts: constexpr = wide if x.dtype.is_fp64() else narrow
    return (x - full((), parts[0], x.dtype)) - full((), parts[1], x.dtype)


@jit
def _log_by_zero(x, wide, narrow):
    # The logarithm of x by a zero, which comes in two parts with its inverse and its logarithm. What the quotient lacks
    # is added, so that the relative error is small where the result vanishes.
    parts: constexpr = wide if x.dtype.is_fp64() else narrow
    quotient = x * full((), parts[2], x.dtype)
    rest = fma(-quotient, full((), parts[0], x.dtype), x) - quotient * full((), parts[1], x.dtype)
    is_small = x < 0.25
    return log(where(is_small, x, quotient)) + where(is_small, full((), -parts[3], x.dtype), rest / x)


@jit
def _hankel_0(x):
    # J0 and Y0 of 6.9 and more, by polynomials of 1/x^2. Sine and cosine of x - pi/4 are made of those of x.
    p64: constexpr = (
        -7.117458758343593e12, 1.1672099751939648e12, -8.884861855046707e10, 4.2310625054810395e9,
        -1.453901546449674e8, 4.048800878849695e6, -104605.8894878704, 2967.7303362321754, -109.76658343446027,
        6.073440566073516, -0.5725005313938569, 0.11215209890771954, -0.07031249999977802, 1.0,
    )
    p32: constexpr = (
        -0.39996284, 0.11015457, -0.07030451, 1.0,
    )
    q64: constexpr = (
        5.789392008679384e13, -9.42104984427838e12, 7.090604307175818e11, -3.3183278941309185e10,
        1.10860899218338e9, -2.944757169266082e7, 702944.0776817702, -17625.56826884681, 549.1076953548953,
        -24.375217469778846, 1.7277196805505746, -0.2271079955568377, 0.0732421874980566, -0.1249999999999999,
    )
    q32: constexpr = (
        1.0880364, -0.2199081, 0.07321371, -0.124999985,
    )
    inverse = 1.0 / x
    t = inverse * inverse
    p, q = _powers(t, p64, p32), _powers(t, q64, q32) * inverse
    s, c = sin(x), cos(x)
    size = rsqrt(x) * 0.5641895835477563
    return size * (p * (c + s) - q * (s - c)), size * (p * (s - c) + q * (c + s))


@jit
def _hankel_1(x):
    # J1 and Y1 of 6.9 and more.
    p64: constexpr = (
        7.55860074898373e12, -1.2401562444573538e12, 9.44698978862146e10, -4.503917762300989e9,
        1.5506396621247548e8, -4.332823694571778e6, 112620.11794445587, -3227.956464318374, 121.33311424298745,
        -6.883278481064712, 0.6765916478210481, -0.1441955558986189, 0.11718749999976523, 1.0,
    )
    p32: constexpr = (
        0.47934845, -0.14190492, 0.11717833, 1.0,
    )
    q64: constexpr = (
        -6.1351569895249516e13, 9.987952573571848e12, -7.521990535156272e11, 3.5236511624525475e10,
        -1.179101818774698e9, 3.1407649221995752e7, -753448.6186929011, 19051.921792899975, -601.4938782525189,
        27.243222285315866, -1.9935234786891614, 0.2775764400395289, -0.10253906249794856, 0.3749999999999999,
    )
    q32: constexpr = (
        -1.2726649, 0.269438, -0.10250684, 0.37499997,
    )
    inverse = 1.0 / x
    t = inverse * inverse
    p, q = _powers(t, p64, p32), _powers(t, q64, q32) * inverse
    s, c = sin(x), cos(x)
    size = rsqrt(x) * 0.5641895835477563
    return size * (p * (s - c) + q * (c + s)), size * (q * (s - c) - p * (c + s))


@jit
def _j0_near_zero(t):
    # J0 up to 2.2, a polynomial of the square.
    c64: constexpr = (
        -2.726588687639927e-17, 9.368616511075615e-15, -2.4027092163876712e-12, 4.709499422717204e-10,
        -6.781683956042219e-8, 6.781684026848846e-6, -0.00043402777777708663, 0.015624999999999738,
        -0.24999999999999997, 1.0,
    )
    c32: constexpr = (
        4.3184178e-10, -6.7559995e-8, 6.780842e-6, -0.00043402635, 0.015624999, -0.25, 1.0,
    )
    return _powers(t, c64, c32)


@jit
def _j1_near_zero(t):
    # J1 by its argument up to 3.7, a polynomial of the square.
    c64: constexpr = (
        -5.464042359989496e-24, 3.264823180361313e-21, -1.4478978679635788e-18, 5.214354052656759e-16,
        -1.5017540979592474e-13, 3.363930533645315e-11, -5.651403355129218e-9, 6.781684027745281e-7,
        -5.425347222221761e-5, 0.0026041666666666635, -0.0625, 0.5,
    )
    c32: constexpr = (
        -1.2405823e-13, 3.307558e-11, -5.6449685e-9, 6.7812744e-7, -5.425333e-5, 0.0026041665, -0.0625, 0.5,
    )
    return _powers(t, c64, c32)


@jit
def j0(x):
    # A polynomial of the square up to 1.5, those about the first two zeros up to 7, and Hankel's expansion.
    zero_1_64: constexpr = (2.404825557695773, -1.176691651530894e-16)
    zero_1_32: constexpr = (2.4048254, 1.08705905e-7)
    first_64: constexpr = (
        -7.778669496396727e-15, 1.1239067480148733e-13, 1.641854436277574e-12, -2.534291600174529e-11,
        -3.166636410023411e-10, 4.326570516974671e-9, 4.470055892763406e-8, -5.304914416708571e-7,
        -4.338826288197198e-6, 4.3729192730118487e-5, 0.0002643770367525115, -0.0021942003590163174,
        -0.00865766959330489, 0.05660177443794624, 0.1079387017549201, -0.5191474972894667,
    )
    first_32: constexpr = (
        -3.986341e-7, -4.328283e-6, 4.3508066e-5, 0.00026443164, -0.002194076, -0.008657701, 0.05660175,
        0.10793871, -0.5191475,
    )
    zero_2_64: constexpr = (5.520078110286311, 8.088597146146722e-17)
    zero_2_32: constexpr = (5.520078, -7.1934146e-8)
    second_64: constexpr = (
        4.3152536773725887e-16, 5.4075386244634994e-15, -1.2111878192591594e-13, -1.3799781869770077e-12,
        2.745333668456152e-11, 2.592197167421083e-10, -4.683397828560872e-9, -3.51153585064337e-8,
        5.716490724981967e-7, 3.199786905901042e-6, -4.652109074073115e-5, -0.00017518572899382528,
        0.0022574402290331795, 0.00463104214590759, -0.052988552867604656, -0.030820651425593645,
        0.34026480655836816,
    )
    second_32: constexpr = (
        -2.8670598e-8, 5.4493916e-7, 3.1724367e-6, -4.6466066e-5, -0.00017514384, 0.002257393, 0.0046310183,
        -0.052988537, -0.030820647, 0.3402648,
    )
    x = abs(x)
    first = _from_zero(x, zero_1_64, zero_1_32)
    first = first * _powers(first, first_64, first_32)
    second = _from_zero(x, zero_2_64, zero_2_32)
    second = second * _powers(second, second_64, second_32)
    far, _ = _hankel_0(x)
    far = where(x == float("inf"), 0.0, far)
    result = where(x < 1.5, _j0_near_zero(x * x), where(x < 3.84, first, second))
    return where(x < 7.0, result, far)


@jit
def j1(x):
    # A polynomial of the square up to 1.84, those about the next two zeros up to 8, and Hankel's expansion.
    zero_1_64: constexpr = (3.8317059702075125, -1.5269184090088067e-16)
    zero_1_32: constexpr = (3.831706, -7.685059e-8)
    first_64: constexpr = (
        -4.652863213294983e-16, -4.892792421025627e-15, 1.2457488651696283e-13, 1.246069526169256e-12,
        -2.799028466207579e-11, -2.362198906144228e-10, 4.735383603764452e-9, 3.248286420722304e-8,
        -5.727805768757988e-7, -3.0368633818934285e-6, 4.620870129950371e-5, 0.0001746642907210383,
        -0.002233125339148101, -0.005179719245638788, 0.05341044413272488, 0.05255614585697725,
        -0.402759395702553,
    )
    first_32: constexpr = (
        4.9942126e-9, 3.1211215e-8, -5.749454e-7, -3.0344574e-6, 4.6213663e-5, 0.00017466243, -0.0022331297,
        -0.0051797186, 0.053410444, 0.052556146, -0.4027594,
    )
    zero_2_64: constexpr = (7.015586669815619, -9.414165653410389e-17)
    zero_2_32: constexpr = (7.015587, -1.8321172e-7)
    second_64: constexpr = (
        1.9320407832651864e-15, -1.2824724525183923e-13, -1.1166426350736097e-12, 2.802099013358362e-11,
        2.0653609115874735e-10, -4.7205038200184975e-9, -2.7273436788116332e-8, 5.665270148336812e-7,
        2.4015808043143325e-6, -4.499147530756308e-5, -0.00012550790955432822, 0.002105587143249052,
        0.0031302917260485072, -0.046970478949741545, -0.0213892128093416, 0.30011575252613254,
    )
    second_32: constexpr = (
        6.0439265e-7, 2.374755e-6, -4.5076635e-5, -0.0001255219, 0.0021056419, 0.003130309, -0.04697049,
        -0.021389216, 0.30011576,
    )
    size = abs(x)
    first = _from_zero(size, zero_1_64, zero_1_32)
    first = first * _powers(first, first_64, first_32)
    second = _from_zero(size, zero_2_64, zero_2_32)
    second = second * _powers(second, second_64, second_32)
    far, _ = _hankel_1(size)
    far = where(size == float("inf"), 0.0, far)
    result = where(size < 1.84, size * _j1_near_zero(size * size), where(size < 5.335, first, second))
    result = where(size < 8.0, result, far)
    return where(x < 0.0, -result, where(x == 0.0, x, result))


@jit
def y0(x):
    # 2/pi log(x / zero) J0 and a polynomial of the square up to 2.2 (9.1.13), polynomials about the next two zeros up
    # to 8, and Hankel's expansion.
    zero_1_64: constexpr = (0.8935769662791675, 2.6596231539720385e-17, 1.1190977808704887, -0.11252280788079412)
    zero_1_32: constexpr = (0.893577, -1.3357979e-8, 1.1190978, -0.11252281)
    first_64: constexpr = (
        5.3188531493637306e-17, -1.7532428485211862e-14, 4.301532591365251e-12, -7.996089786642181e-10,
        1.0780429588062186e-7, -9.894726462742872e-6, 0.0005617931795900012, -0.01674467259105561,
        0.18214429522164177,
    )
    first_32: constexpr = (
        -7.394097e-10, 1.07480446e-7, -9.893918e-6, 0.0005617923, -0.016744671, 0.1821443,
    )
    zero_2_64: constexpr = (3.957678419314858, -1.0764340697562706e-16)
    zero_2_32: constexpr = (3.9576783, 1.0129118e-7)
    second_64: constexpr = (
        -8.120215006235533e-16, 5.533826235676353e-16, 5.854326674526299e-15, 1.1174283193311654e-14,
        -7.699393647866903e-14, 1.2422448328689236e-13, -4.756299464912109e-13, 2.6056848765640498e-12,
        -1.0866498264813503e-11, 4.449288486615634e-11, -1.8578995889186037e-10, 7.671319424791717e-10,
        -3.657021347467938e-9, 1.8927945019810583e-8, -2.1853248503571927e-8, -2.93488075717209e-7,
        -4.893369387287397e-6, 5.092291378719115e-5, 0.0001952694024626447, -0.00218351887404667,
        -0.006852566677112076, 0.0585238221051701, 0.050855909592158265, -0.40254267177502423,
    )
    second_32: constexpr = (
        -8.6130205e-9, 2.5573987e-8, 3.2826375e-9, -3.1229735e-7, -4.945386e-6, 5.09477e-5, 0.00019531805,
        -0.0021835342, -0.0068525854, 0.058523826, 0.050855912, -0.40254268,
    )
    zero_3_64: constexpr = (7.086051060301773, -8.835285723085408e-17)
    zero_3_32: constexpr = (7.086051, 7.305812e-8)
    third_64: constexpr = (
        -1.2515309663168442e-13, -1.3109093283400666e-12, 2.8290125498440546e-11, 2.3030978993426954e-10,
        -4.717238612232896e-9, -3.0984723644462216e-8, 5.749349609381277e-7, 2.7013638040293515e-6,
        -4.59514067059e-5, -0.00014060259774348932, 0.002175984016442576, 0.003318348268895877,
        -0.04802407007625982, -0.021175236556769537, 0.3000976149104752,
    )
    third_32: constexpr = (
        6.278172e-7, 2.6909531e-6, -4.6044523e-5, -0.00014063974, 0.0021760324, 0.0033183726, -0.048024077,
        -0.02117524, 0.3000976,
    )
    t = x * x
    first = _from_zero(x, zero_1_64, zero_1_32) * (x + zero_1_64[0]) * _powers(t, first_64, first_32)
    first = fma(0.6366197723675814 * _log_by_zero(x, zero_1_64, zero_1_32), _j0_near_zero(t), first)
    second = _from_zero(x, zero_2_64, zero_2_32)
    second = second * _powers(second, second_64, second_32)
    third = _from_zero(x, zero_3_64, zero_3_32)
    third = third * _powers(third, third_64, third_32)
    _, far = _hankel_0(x)
    far = where(x == float("inf"), 0.0, far)
    result = where(x < 2.2, first, where(x < 5.43, second, third))
    result = where(x < 8.0, result, far)
    result = where(x == 0.0, -float("inf"), result)
    return where(x < 0.0, float("nan"), result)


@jit
def y1(x):
    # 2/pi log(x / zero) J1 and a polynomial of the square up to 3.7 (9.1.11), one about the second zero up to 6.94, and
    # Hankel's expansion.
    zero_1_64: constexpr = (2.197141326031017, -4.8259835876454966e-17, 0.4551368581312111, 0.7871571181569951)
    zero_1_32: constexpr = (2.1971414, -8.288927e-8, 0.45513687, 0.7871571)
    first_64: constexpr = (
        8.210667449393791e-24, -4.739158916370285e-21, 2.01184373506067e-18, -6.881160309417834e-16,
        1.8637026773388687e-13, -3.8723233421853086e-11, 5.912915880373372e-9, -6.242862699295546e-7,
        4.144150087152551e-5, -0.0014502499501658096, 0.016027721447913087, 0.13187550549740895,
    )
    first_32: constexpr = (
        1.5206621e-13, -3.798402e-11, 5.904485e-9, -6.2423265e-7, 4.1441315e-5, -0.0014502496, 0.01602772,
        0.1318755,
    )
    zero_2_64: constexpr = (5.429681040794135, 4.162514026670377e-16)
    zero_2_32: constexpr = (5.429681, 2.1651435e-7)
    second_64: constexpr = (
        1.0558543516747573e-16, -3.3962429262629634e-16, 6.177673686617471e-16, -6.061129013638405e-15,
        3.84146348689651e-14, -2.0062922963636496e-13, 1.162931280058974e-12, -4.434908391283436e-12,
        2.2892889935394925e-12, -3.8556500999706004e-10, 5.598021475581622e-9, 2.5505146993139066e-8,
        -5.464420573590068e-7, -2.8638625382039995e-6, 4.645867905812616e-5, 0.0001466208928937013,
        -0.002165998751087549, -0.0041601159343907235, 0.05094793974342005, 0.031338677444086686,
        -0.3403180455234406,
    )
    second_32: constexpr = (
        6.1736114e-9, 2.2768667e-8, -5.4962265e-7, -2.8569498e-6, 4.6464927e-5, 0.0001466132, -0.0021660037,
        -0.0041601122, 0.05094794, 0.031338677, -0.34031805,
    )
    t = x * x
    first = _from_zero(x, zero_1_64, zero_1_32) * (x + zero_1_64[0]) * _powers(t, first_64, first_32) / x
    first = fma(0.6366197723675814 * _log_by_zero(x, zero_1_64, zero_1_32), x * _j1_near_zero(t), first)
    second = _from_zero(x, zero_2_64, zero_2_32)
    second = second * _powers(second, second_64, second_32)
    _, far = _hankel_1(x)
    far = where(x == float("inf"), 0.0, far)
    result = where(x < 3.7, first, where(x < 6.94, second, far))
    # Below it the result is beyond the range.
    least: constexpr = 3e-309 if x.dtype.is_fp64() else 1.5e-39
    result = where(x < least, -float("inf"), result)
    return where(x < 0.0, float("nan"), result)


@jit
def _most(n):
    # The largest of a block, or a number itself.
    return n.max(axis=None) if len(n.shape) > 0 else n


@jit
def _is_beyond_range(n, size):
    # Whether (e size / 2n)^n, which J_n is below and 1/Y_n about, is less than f64 holds.
    return (n > 430.0) & (n > 8.0 * size)


@jit
def _twice_inverse(x):
    # 2/x, and what its rounding lost.
    inverse = 2.0 / x
    return inverse, fma(-inverse, x, full((), 2.0, float64)) / x


@jit
def _next(k, factor, rest, here, before):
    # What follows in the recurrence, 2k/x here - before, with the factor held in two parts: its errors would add up.
    k = to(k, float64)
    high = k * factor
    low = fma(k, rest, fma(k, factor, -high))
    return fma(high, here, fma(low, here, -before))


@jit
def jn(n, x):
    # Recurrence in f64 (9.1.27): upwards from J0 and J1 where n is below x, else downwards to the larger of them, the
    # method of J. C. P. Miller (9.12). In f32 within 1 ulp; in f64 within 8 ulp for n up to 20, and 4e-16 where x > n.
    size = abs(to(x, float64))
    order = where(size == size, to(n, int32), -1)
    size = where(order < 0, float("nan"), size)
    n64 = to(order, float64)
    first, second = j0(size), j1(size)
    upwards = (n64 < size) & (size < float("inf"))
    factor, rest = _twice_inverse(size)
    before, here = first, second
    for i in range(1, _most(where(upwards, order, 0))):
        after = _next(i, factor, rest, here, before)
        before, here = where(i < order, here, before), where(i < order, after, here)
    result = where(upwards, here, 0.0)

    # What is tiny is raised to 2^-27, below which J_n is a power of x.
    downwards = (order > 1) & (n64 >= size) & (_is_beyond_range(n64, size) == 0)
    ratio = minimum(size * 134217728.0, 1.0)
    factor, rest = _twice_inverse(maximum(size, 7.450580596923828e-9))
    above, here, wanted, power = zeros_like(size), zeros_like(size) + 1.0, zeros_like(size), zeros_like(size) + 1.0
    # From so far above n that nothing is left of the numbers with which it begins.
    top = _most(where(downwards, order + (order >> 3) + 24, 0))
    for i in range(0, top):
        k = top - i
        below = _next(k, factor, rest, here, above)
        above, here = here, below
        wanted = where(k == order + 1, here, wanted)
        power = where(k <= order, power * ratio, power)
        # From 2^400 on by 2^-400.
        scale = where(abs(here) > 2.582249878086909e120, 3.872591914849318e-121, 1.0)
        above, here, wanted = above * scale, here * scale, wanted * scale
    scale = where(abs(here) > abs(above), first / here, second / above)
    result = where(downwards, wanted * scale * power, result)
    result = where(order == 0, first, where(order == 1, second, result))
    result = where((x < 0.0) & ((order & 1) == 1), -result, result)
    return to(where(order < 0, size, result), x.dtype)


@jit
def yn(n, x):
    # Recurrence in f64, upwards from Y0 and Y1. In f32 within 1 ulp; in f64 within 10 ulp for n up to 20.
    wide = to(x, float64)
    order = where(wide >= 0.0, to(n, int32), -1)
    wide = where(order < 0, float("nan"), wide)
    before, here = y0(wide), y1(wide)
    result = where(order == 0, before, here)
    is_known = (wide == float("inf")) | _is_beyond_range(to(order, float64), wide)
    factor, rest = _twice_inverse(wide)
    for i in range(1, _most(where(is_known, 0, order))):
        after = _next(i, factor, rest, here, before)
        # What is below the range stays there.
        before, here = here, where(abs(after) < float("inf"), after, -float("inf"))
        result = where(i < order, here, result)
    result = where(is_known & (order > 1), where(wide == float("inf"), 0.0, -float("inf")), result)
    return to(where(order < 0, wide, result), x.dtype)


@jit
def _growth(x, factor):
    # e^x by the root of x, times a factor. Where e^x is too large before the result is, e^16 is multiplied last.
    edge: constexpr = 700.0 if x.dtype.is_fp64() else 80.0
    is_large = x > edge
    size = exp(where(is_large, x - 16.0, x)) * (rsqrt(x) * factor)
    size = where(is_large, size * 8886110.520507872, size)
    return where(x == float("inf"), x, size)


@jit
def cyl_bessel_i0(x):
    # A polynomial of the square up to 8, beyond e^x by the root of x (9.7.1) times one of 1/x - 1/16. Within 4 ulp.
    near_64: constexpr = (
        8.67902981352033e-34, 4.150989971755878e-31, 3.9427700235024045e-28, 2.5891413445642945e-25,
        1.4968537360644325e-22, 7.242037068831104e-20, 2.896910172910322e-17, 9.385965503041405e-15,
        2.4028075725315426e-12, 4.709502794630972e-10, 6.781684027946062e-8, 6.781684027770786e-6,
        0.000434027777777793, 0.015624999999999986, 0.25,
    )
    near_32: constexpr = (
        1.3927878e-19, 1.8936406e-17, 1.0178146e-14, 2.3657534e-12, 4.7201226e-10, 6.7798425e-8, 6.781867e-6,
        0.00043402685, 0.015625002, 0.25,
    )
    far_64: constexpr = (
        -5.600643591189384e18, -9.514314853657051e16, 1.6037399418790054e17, 2.837728273028278e15,
        -2.1506072164185018e15, -4.202404282110548e13, 1.832821300238195e13, 4.420816207273878e11,
        -1.1415321607572433e11, -4.018791406820967e9, 5.462119333984623e8, 3.395974204257946e7,
        -1.5392719343775092e6, -235809.76585761976, -7399.411944839256, 519.073559790556, 92.53583515838561,
        10.556499422915943, 1.488517134785552, 0.3118043949696654, 0.09724543286405074, 0.04564186641021979,
        0.03487131504443581, 0.053768831738685664, 0.4021765094450081,
    )
    far_32: constexpr = (
        1.8169844, 0.3808116, 0.0967829, 0.04551281, 0.03487151, 0.05376889, 0.4021765,
    )
    x = abs(x)
    t = x * x
    near = fma(t, _powers(t, near_64, near_32), full((), 1.0, x.dtype))
    far = _growth(x, _powers(1.0 / x - 0.0625, far_64, far_32))
    return where(x < 8.0, near, far)


@jit
def cyl_bessel_i1(x):
    # As `cyl_bessel_i0`. Within 4 ulp.
    near_64: constexpr = (
        2.64010358501899e-35, 1.4168681474080838e-32, 1.4012838564452098e-29, 9.966582210774811e-27,
        6.2362225960358154e-24, 3.2918719279510608e-21, 1.448453647539377e-18, 5.214425677820027e-16,
        1.501754725070937e-13, 3.363930568633326e-11, 5.651403356529876e-9, 6.781684027775767e-7,
        5.425347222222266e-5, 0.002604166666666666, 0.0625,
    )
    near_32: constexpr = (
        2.770817e-18, 3.4643775e-16, 1.6204594e-13, 3.3179327e-11, 5.6617675e-9, 6.78038e-7, 5.425429e-5,
        0.0026041646, 0.0625,
    )
    far_64: constexpr = (
        5.82176194070419e18, 8.665326531764006e16, -1.6676083318088054e17, -2.5959985719943355e15,
        2.2381810204921798e15, 3.888282437078915e13, -1.9115155308265223e13, -4.182585702004319e11,
        1.196643854799484e11, 3.92753009262423e9, -5.796476540775658e8, -3.436573425502236e7,
        1.7003548333106355e6, 246812.81250341205, 7384.096436005164, -579.0729589016418, -100.37594816450488,
        -11.577447812192249, -1.677943639150118, -0.36530873788120255, -0.12025266919634885,
        -0.061597889336021706, -0.05612435554158148, -0.15599323509177165, 0.38939845902587233,
    )
    far_32: constexpr = (
        -2.0489497, -0.442032, -0.1197154, -0.061453614, -0.056124587, -0.1559933, 0.38939846,
    )
    size = abs(x)
    t = size * size
    near = size * fma(t, _powers(t, near_64, near_32), full((), 0.5, x.dtype))
    far = _growth(size, _powers(1.0 / size - 0.0625, far_64, far_32))
    return copysign(where(size < 8.0, near, far), x)


@jit
def _flushed(x):
    # A zero in place of what is subnormal.
    return where(abs(x) < 2.2250738585072014e-308, copysign(zeros_like(x), x), x)


@jit
def rcp64h(x):
    # Of the upper word, and rounded to it, as `rcp.approx.ftz.f64` has it; what is subnormal counts as zero. The
    # relative error is below 2^-19: both words that are cut off have a part in it.
    upper = to(to(x, int64, bitcast=True) & -0x100000000, float64, bitcast=True)
    bits = to(_flushed(1.0 / _flushed(upper)), int64, bitcast=True)
    inverse = to((bits + 0x80000000) & -0x100000000, float64, bitcast=True)
    return where(x == x, inverse, x)
