"""What every operation of PTX gives for edge values, by exact arithmetic: ops.py writes ops.txt, which tests/unit/ptx_ops.c reads.
A line without indent is an opcode and the letters of its results and operands (p predicate, h, w, x: 16, 32, 64 bits; ~: two units in the last
place are allowed); the lines below it are operands and results, hexadecimal.
ops.py FILE [CASES]: at most so many of each operation."""
import itertools, math, sys
from fractions import Fraction as Q

out = []
def line(op, letters, operands, results, about=False):
    results = results if isinstance(results, (list, tuple)) else [results]
    out.append((f"{op} {letters}{' ~' if about else ''}", " ".join(f"{int(v):x}" for v in (*operands, *results))))

# ---- integers
L = {16: "h", 32: "w", 64: "x"}
def u(v, n): return v & ((1 << n) - 1)
def s(v, n): v = u(v, n); return v - (1 << n) if v >> (n - 1) else v
def edges(n): return [u(v, n) for v in (0, 1, 2, 7, -1, -2, 1 << (n - 1), (1 << (n - 1)) - 1, (1 << (n // 2)) - 1, -(1 << (n // 2)), 0x1234567890abcdef, 100)]
def tdiv(a, b): q = abs(a) // abs(b); return q if (a < 0) == (b < 0) else -q
def pairs(n): return list(itertools.product(edges(n), repeat=2))
def triples(n): e = edges(n); return [(a, b, c) for a, b in zip(e, e[3:] + e[:3]) for c in (0, 1, u(-1, n), e[10])] + [(u(-1, n),) * 3]
for n in (16, 32, 64):
    c = L[n]
    for a, b in pairs(n):
        for t, f in (("u", u), ("s", s)):
            x, y = f(a, n), f(b, n)
            line(f"add.{t}{n}", c + c + c, (a, b), u(x + y, n)); line(f"sub.{t}{n}", c + c + c, (a, b), u(x - y, n))
            line(f"mul.lo.{t}{n}", c + c + c, (a, b), u(x * y, n)); line(f"mul.hi.{t}{n}", c + c + c, (a, b), u(x * y >> n, n))
            if n < 64: line(f"mul.wide.{t}{n}", L[2 * n] + c + c, (a, b), u(x * y, 2 * n))
            if y: line(f"div.{t}{n}", c + c + c, (a, b), u(tdiv(x, y), n)); line(f"rem.{t}{n}", c + c + c, (a, b), u(x - tdiv(x, y) * y, n))
            line(f"min.{t}{n}", c + c + c, (a, b), u(min(x, y), n)); line(f"max.{t}{n}", c + c + c, (a, b), u(max(x, y), n))
            for op, r in (("eq", x == y), ("ne", x != y), ("lt", x < y), ("le", x <= y), ("gt", x > y), ("ge", x >= y)):
                line(f"setp.{op}.{t}{n}", "p|p" + c + c, (a, b), (r, not r))
                if a < 3: 
                    for k, g in (("and", lambda v, z: v and z), ("or", lambda v, z: v or z), ("xor", lambda v, z: v != z)):
                        for z in (0, 1): line(f"setp.{op}.{k}.{t}{n}", "p|p" + c + c + "p", (a, b, z), (bool(g(r, z)), bool(g(not r, z))))
                if t == "u" and op in ("eq", "ne"):
                    line(f"setp.{op}.b{n}", "p|p" + c + c, (a, b), (r, not r))
                    for k, g in (("and", lambda v, z: v and z), ("or", lambda v, z: v or z), ("xor", lambda v, z: v != z)):
                        if a < 3: line(f"setp.{op}.{k}.b{n}", "p|p" + c + c + "p", (a, b, 1), (bool(g(r, 1)), bool(g(not r, 1))))
            if t == "u":
                for op, r in (("lo", x < y), ("ls", x <= y), ("hi", x > y), ("hs", x >= y)):
                    line(f"setp.{op}.u{n}", "p|p" + c + c, (a, b), (r, not r))
                    for k, g in (("and", lambda v, z: v and z), ("or", lambda v, z: v or z), ("xor", lambda v, z: v != z)):
                        if a < 2: line(f"setp.{op}.{k}.u{n}", "p|p" + c + c + "p", (a, b, 1), (bool(g(r, 1)), bool(g(not r, 1))))
        line(f"and.b{n}", c * 3, (a, b), a & b); line(f"or.b{n}", c * 3, (a, b), a | b); line(f"xor.b{n}", c * 3, (a, b), a ^ b)
        for t in "bus":
            for p in (0, 1): line(f"selp.{t}{n}", c * 3 + "p", (a, b, p), a if p else b) if a < 3 else None
        if n > 16:
            for p in (0, 1): line(f"selp.f{n}", c * 3 + "p", (a, b, p), a if p else b) if a < 3 else None
    for a, b, d in triples(n):
        for t, f in (("u", u), ("s", s)):
            x, y, z = f(a, n), f(b, n), f(d, n)
            line(f"mad.lo.{t}{n}", c * 4, (a, b, d), u(x * y + z, n)); line(f"mad.hi.{t}{n}", c * 4, (a, b, d), u((x * y >> n) + z, n))
            if n < 64: line(f"mad.wide.{t}{n}", L[2 * n] + c + c + L[2 * n], (a, b, u(z, 2 * n)), u(x * y + z, 2 * n))
            if n == 32: line(f"sad.{t}32", "wwww", (a, b, d), u(abs(x - y) + z, 32))
    for a in edges(n):
        x = s(a, n)
        line(f"neg.s{n}", c + c, (a,), u(-x, n)); line(f"abs.s{n}", c + c, (a,), u(abs(x), n))
        line(f"not.b{n}", c + c, (a,), u(~a, n)); line(f"cnot.b{n}", c + c, (a,), int(a == 0))
        for t in "bus": line(f"mov.{t}{n}", c + c, (a,), a)
        if n > 16: line(f"mov.f{n}", c + c, (a,), a)
        for k in (0, 1, n // 2, n - 1, n, n + 1, 255, 0xffffffff, 1 << 31):
            line(f"shl.b{n}", c + c + "w", (a, k), u(a << k, n) if k < n else 0)
            for t in "ub": line(f"shr.{t}{n}", c + c + "w", (a, k), a >> k if k < n else 0)
            line(f"shr.s{n}", c + c + "w", (a, k), u(x >> min(k, n - 1), n))
        if n > 16:
            line(f"clz.b{n}", "w" + c, (a,), n - a.bit_length()); line(f"popc.b{n}", "w" + c, (a,), bin(a).count("1"))
            line(f"brev.b{n}", c + c, (a,), int(f"{a:0{n}b}"[::-1], 2))
            for t in "us":
                m = u(~a, n) if t == "s" and x < 0 else a
                bit = m.bit_length() - 1
                line(f"bfind.{t}{n}", "w" + c, (a,), u(bit, 32)); line(f"bfind.shiftamt.{t}{n}", "w" + c, (a,), u(-1, 32) if bit < 0 else n - 1 - bit)
            for pos, length in itertools.product((0, 1, 5, n // 2, n - 1, n, 200, 256 + 3), (0, 1, 4, n // 2, n - 1, n, 255, 256)):
                q, k = pos & 255, length & 255
                def bit_at(i, sign): return a >> i & 1 if i < n else (a >> (n - 1) if sign else 0)
                for t in "us":
                    field = sum(bit_at(q + j, t == "s") << j for j in range(min(k, n)))
                    if t == "s" and 0 < k < n: field = s(field, k)
                    line(f"bfe.{t}{n}", c + c + "ww", (a, pos, length), u(field, n))
                into = edges(n)[10]
                mask = u(((1 << k) - 1) << q, n) if q < n else 0
                line(f"bfi.b{n}", c * 3 + "ww", (a, into, pos, length), (into & ~mask) | (u(a << q, n) & mask))
for a, b, _ in triples(32):
    for name, f in ("min", min), ("max", max): line(f"{name}.relu.s32", "www", (a, b), max(f(s(a, 32), s(b, 32)), 0))
for a, b in pairs(32):
    line("add.sat.s32", "www", (a, b), u(max(min(s(a, 32) + s(b, 32), 2**31 - 1), -2**31), 32))
    line("sub.sat.s32", "www", (a, b), u(max(min(s(a, 32) - s(b, 32), 2**31 - 1), -2**31), 32))
    halves = lambda f: u(f(a & 65535, b & 65535), 16) | u(f(a >> 16, b >> 16), 16) << 16
    for t in "us": line(f"add.{t}16x2", "www", (a, b), halves(lambda x, y: x + y))
    line("min.s16x2", "www", (a, b), halves(lambda x, y: min(s(x, 16), s(y, 16)))); line("max.s16x2", "www", (a, b), halves(lambda x, y: max(s(x, 16), s(y, 16))))
    line("min.u16x2", "www", (a, b), halves(min)); line("max.u16x2", "www", (a, b), halves(max))
    for ta, tb in itertools.product("us", repeat=2):
        fa, fb = (u if ta == "u" else s), (u if tb == "u" else s)
        line(f"dp4a.{ta}32.{tb}32", "wwww", (a, b, 7), u(7 + sum(fa(a >> 8 * k, 8) * fb(b >> 8 * k, 8) for k in range(4)), 32))
    for k in (0, 1, 31, 32, 33, 255):
        both = b << 32 | a
        line("shf.l.wrap.b32", "wwww", (a, b, k), u(both << (k & 31) >> 32, 32)); line("shf.r.wrap.b32", "wwww", (a, b, k), u(both >> (k & 31), 32))
        line("shf.l.clamp.b32", "wwww", (a, b, k), u(both << min(k, 32) >> 32, 32)); line("shf.r.clamp.b32", "wwww", (a, b, k), u(both >> min(k, 32), 32))
def prmt(a, b, sel, mode=""):
    v = [(b << 32 | a) >> 8 * k & 255 for k in range(8)]
    k = sel & 3
    pick = {"": None, ".f4e": [k, k + 1, k + 2, k + 3], ".b4e": [k, (k + 7) % 8, (k + 6) % 8, (k + 5) % 8], ".rc8": [k] * 4, ".ecl": [max(k, j) for j in range(4)],
            ".ecr": [min(k, j) for j in range(4)], ".rc16": [0, 1, 0, 1] if k % 2 == 0 else [2, 3, 2, 3]}[mode]
    if pick is None: return sum(((255 if v[n & 7] >> 7 else 0) if n & 8 else v[n & 7]) << 8 * j for j, n in enumerate(sel >> 4 * j & 15 for j in range(4)))
    return sum(v[n] << 8 * j for j, n in enumerate(pick))
for a, b in ((0x33221100, 0x77665544), (0x83921180, 0xf7660584)):
    for sel in (0x3210, 0x7654, 0xfedc, 0x08192a3b, 0x1032, 0xaaaa0001, 0xb): line("prmt.b32", "wwww", (a, b, sel), prmt(a, b, sel))
    for m in (".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        for k in range(4): line("prmt.b32" + m, "wwww", (a, b, k), prmt(a, b, k, m))
for t in (0, 0x80, 0xe8, 0x96, 0xff, 0x1b):
    # the table is an immediate: one operation for each
    a, b, c = 0xff00f0cc, 0x0f0faa33, 0x12345678
    line(f"lop3.b32#{t:x}", "wwww", (a, b, c), sum((t >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k for k in range(32)))
for a, b in itertools.product((0, 1), repeat=2):
    line("and.pred", "ppp", (a, b), a & b); line("or.pred", "ppp", (a, b), a | b); line("xor.pred", "ppp", (a, b), a ^ b); line("not.pred", "pp", (a,), 1 - a); line("mov.pred", "pp", (a,), a)
for c in (0, 1, 0x7fffffff, 0x80000000, 0xffffffff):
    for t in ("b32", "u32", "s32", "f32"): line(f"slct.{t}.s32", "wwww", (11, 22, c), 11 if c < 1 << 31 else 22)
    line("slct.b64.s32", "xxxw", (11, 22, c), 11 if c < 1 << 31 else 22)

# ---- floats: exact values, rounded once
class F:
    def __init__(self, name, exp, man, letter, nan=None): self.name, self.e, self.m, self.letter, self.bits, self.bias = name, exp, man, letter, 1 + exp + man, (1 << (exp - 1)) - 1; self.nan = nan or ((1 << (exp + man)) - 1); self.sign = 1 << (exp + man); self.inf = ((1 << exp) - 1) << man
    def value(self, b):
        neg, e, m = b >> (self.bits - 1), b >> self.m & ((1 << self.e) - 1), b & ((1 << self.m) - 1)
        if e == (1 << self.e) - 1: return ("nan",) if m else ("inf", -1 if neg else 1)
        q = Q(m + (1 << self.m if e else 0)) * Q(2) ** (max(e, 1) - self.bias - self.m)
        return ("num", -q if neg else q, bool(neg))
    def round(self, q, mode="rn", neg=None):
        """bits of the value q; zero has the sign neg"""
        neg = q < 0 if q else bool(neg)
        a = abs(q)
        sign = self.sign if neg else 0
        if a == 0: return sign
        e = max(a.numerator.bit_length() - a.denominator.bit_length(), 1 - self.bias - 1)
        while Q(2) ** e > a and e > 1 - self.bias: e -= 1
        while Q(2) ** (e + 1) <= a: e += 1
        e = max(e, 1 - self.bias)
        unit = Q(2) ** (e - self.m)
        n, rest = divmod(a, unit)
        n = int(n)
        up = {"rn": rest * 2 > unit or (rest * 2 == unit and n % 2), "rz": False, "rm": neg and rest > 0, "rp": not neg and rest > 0, "rna": rest * 2 >= unit}[mode]
        n += up
        if n >> (self.m + 1): n >>= 1; e += 1
        if e > self.bias:
            largest = self.inf - 1
            return sign | (largest if mode == "rz" or (mode == "rm" and not neg) or (mode == "rp" and neg) else self.inf)
        return sign | (n if n < 1 << self.m else (e + self.bias) << self.m | (n - (1 << self.m)))
f16, bf16, f32, f64 = F("f16", 5, 10, "h"), F("bf16", 8, 7, "h"), F("f32", 8, 23, "w"), F("f64", 11, 52, "x")
def nan_of(f): return 0x7ff8000000000000 if f is f64 else f.nan
def flush(f, b): return b & f.sign if not b & f.inf and b & ~f.sign else b
def saturate(f, b):
    k = f.value(b)
    if k[0] == "nan" or b & f.sign: return 0
    return f.round(Q(1)) if k[0] == "inf" or k[1] > 1 else b
def arith(f, op, xs, mode="rn"):
    """bits of op on bits"""
    v = [f.value(x) for x in xs]
    if any(k[0] == "nan" for k in v): return nan_of(f)
    neg = [bool(x & f.sign) for x in xs]
    inf = [k[0] == "inf" for k in v]
    zero = [k[0] == "num" and k[1] == 0 for k in v]
    if op == "sub": return arith(f, "add", (xs[0], xs[1] ^ f.sign), mode)
    if op == "add":
        if inf[0] or inf[1]:
            if inf[0] and inf[1] and neg[0] != neg[1]: return nan_of(f)
            return xs[0] if inf[0] else xs[1]
        q = v[0][1] + v[1][1]
        same = neg[0] == neg[1]
        return f.round(q, mode, neg[0] if same and zero[0] and zero[1] else mode == "rm" if q == 0 else None)
    if op == "mul":
        n = neg[0] != neg[1]
        if any(inf): return nan_of(f) if any(zero) else f.inf | (f.sign if n else 0)
        return f.round(v[0][1] * v[1][1], mode, n)
    if op == "fma":
        n = neg[0] != neg[1]
        if inf[0] or inf[1]:
            if zero[0] or zero[1] or (inf[2] and neg[2] != n): return nan_of(f)
            return f.inf | (f.sign if n else 0)
        if inf[2]: return xs[2]
        p = v[0][1] * v[1][1]; q = p + v[2][1]
        return f.round(q, mode, n if p == 0 and zero[2] and n == neg[2] else mode == "rm" if q == 0 else None)
    if op == "div":
        n = neg[0] != neg[1]; sign = f.sign if n else 0
        if inf[0]: return nan_of(f) if inf[1] else f.inf | sign
        if inf[1]: return sign
        if zero[1]: return nan_of(f) if zero[0] else f.inf | sign
        return f.round(v[0][1] / v[1][1], mode, n)
    if op == "rcp": return arith(f, "div", (f.round(Q(1)), xs[0]), mode)
    if op == "sqrt":
        if zero[0]: return xs[0]
        if neg[0]: return nan_of(f)
        if inf[0]: return xs[0]
        q = v[0][1]; k = 2 * (f.m + 70 + abs(q.numerator.bit_length() - q.denominator.bit_length()))
        r = math.isqrt((q.numerator << 2 * k) // q.denominator)
        exact = Q(r, 1 << k) ** 2 == q
        return f.round(Q(2 * r + (0 if exact else 1), 2 << k), mode)
def specials(f):
    one = f.round(Q(1))
    return [0, f.sign, one, one | f.sign, one + 1, one - 1, f.round(Q(2)), f.round(Q(1, 3)), f.round(Q(-7, 5)), f.round(Q(3)), 1, f.sign | 3, (1 << f.m) - 1, 1 << f.m, f.sign | 1 << f.m,
            f.inf - 1, f.sign | (f.inf - 1), f.inf, f.sign | f.inf, nan_of(f), f.round(Q(1, 2) ** (f.m + 1)), f.round(Q(1000)), f.round(Q(5, 2))]
def is_nan(f, b): return f.value(b)[0] == "nan"
def less(f, a, b): k = lambda x: (lambda v: (v[1] * 10**400 if v[0] == "inf" else v[1]))(f.value(x)); return k(a) < k(b)
def equal(f, a, b): return a == b or not (a | b) & ~f.sign
def least(f, a, b, most=False, nan=False):
    if is_nan(f, a) or is_nan(f, b):
        if nan or (is_nan(f, a) and is_nan(f, b)): return nan_of(f)
        return b if is_nan(f, a) else a
    if equal(f, a, b): return (a & b if most else a | b) if a != b else a
    return b if less(f, a, b) == most else a
def two(f, r):
    """the same for pairs"""
    return r | r << 16
def triple_list(f):
    e = specials(f); n = len(e)
    return [(e[i], e[(i * 5 + j) % n], e[(i * 3 + 7 * j) % n]) for i in range(n) for j in range(6)] + \
           [(f.round(Q(1) + Q(1, 2 ** (f.m // 2 + 1))), f.round(Q(1) + Q(1, 2 ** (f.m // 2 + 1))), f.round(Q(-1))), (e[4], e[4], e[20]), (e[4], e[2], e[20] | f.sign), (e[4], e[2], 1), (e[4], e[2], f.sign | 1)]
for f in (f16, bf16, f32, f64):
    c, e = f.letter, specials(f)
    half = f.bits == 16
    def emit(op, letters, xs, r, about=False):
        line(f"{op}.{f.name}", letters, xs, r, about)
        if half: line(f"{op}.{f.name}x2", letters.replace("h", "w"), [x | y << 16 for x, y in zip(xs, xs)], two(f, r), about)
    for xs in itertools.product(e, repeat=2):
        for op in ("add", "sub", "mul"):
            r = arith(f, op, xs)
            emit(f"{op}.rn", c * 3, xs, r); emit(op, c * 3, xs, r)
            if f in (f16, f32):
                z = flush(f, arith(f, op, [flush(f, x) for x in xs]))
                for p in (f"{op}.rn", op):
                    emit(p + ".ftz", c * 3, xs, z); emit(p + ".sat", c * 3, xs, saturate(f, r)); emit(p + ".ftz.sat", c * 3, xs, saturate(f, z))
        if not half:
            for m in ("rn", "rz", "rm", "rp"):
                for op in ("add", "sub", "mul", "div"): emit(f"{op}.{m}", c * 3, xs, arith(f, op, xs, m)) if m != "rn" or op == "div" else None
        if f is f32:
            z = flush(f, arith(f, "div", [flush(f, x) for x in xs])); r = arith(f, "div", xs)
            emit("div.rn.ftz", "www", xs, z)
            for p in ("div.full", "div.approx"): emit(p, "www", xs, r); emit(p + ".ftz", "www", xs, z)
        for most, op in ((False, "min"), (True, "max")):
            emit(op, c * 3, xs, least(f, *xs, most))
            if f is not f64: emit(op + ".NaN", c * 3, xs, least(f, *xs, most, True))
            fx = [flush(f, x) for x in xs]
            if f is f32: line(op + ".ftz.f32", "www", xs, least(f, *fx, most)); line(op + ".ftz.NaN.f32", "www", xs, least(f, *fx, most, True))
            if f is f16: emit(op + ".ftz", "hhh", xs, least(f, *fx, most)); emit(op + ".ftz.NaN", "hhh", xs, least(f, *fx, most, True))
        if not half: line(f"copysign.{f.name}", c * 3, xs, (xs[0] & f.sign) | (xs[1] & ~f.sign))
        for ftz in (False, True):
            if ftz and f not in (f16, f32): continue
            a, b = [flush(f, x) for x in xs] if ftz else xs
            n = is_nan(f, a) or is_nan(f, b)
            lt, eq, gt = (False, False, False) if n else (not equal(f, a, b) and less(f, a, b), equal(f, a, b), not equal(f, a, b) and less(f, b, a))
            for op, r in (("eq", eq), ("ne", lt or gt), ("lt", lt), ("le", lt or eq), ("gt", gt), ("ge", gt or eq), ("equ", eq or n), ("neu", not eq), ("ltu", lt or n), ("leu", lt or eq or n), ("gtu", gt or n), ("geu", gt or eq or n), ("num", not n), ("nan", n)):
                t = ("ftz." if ftz else "") + f.name
                line(f"setp.{op}.{t}", "p|p" + c + c, xs, (r, not r))
                if xs[0] in e[:3] and xs[1] in e[::4]:
                    for k, g in (("and", lambda v, z: v and z), ("or", lambda v, z: v or z), ("xor", lambda v, z: v != z)):
                        for z in (0, 1): line(f"setp.{op}.{k}.{t}", "p|p" + c + c + "p", (*xs, z), (bool(g(r, z)), bool(g(not r, z))))
                if half and not ftz: line(f"setp.{op}.{t}x2", "p|pww", (xs[0] | xs[0] << 16, xs[1] | xs[0] << 16), (r, {"eq": 1, "ne": 0, "lt": 0, "le": 1, "gt": 0, "ge": 1, "equ": 1, "neu": 0, "ltu": 0, "leu": 1, "gtu": 0, "geu": 1, "num": 1, "nan": 0}[op] if not is_nan(f, xs[0]) else int(op in ("equ", "neu", "ltu", "leu", "gtu", "geu", "nan"))))
    for xs in triple_list(f):
        r = arith(f, "fma", xs)
        emit("fma.rn", c * 4, xs, r)
        if half: emit("fma.rn.relu", c * 4, xs, r if is_nan(f, r) else 0 if r & f.sign else r)
        if f in (f16, f32):
            z = flush(f, arith(f, "fma", [flush(f, x) for x in xs]))
            emit("fma.rn.ftz", c * 4, xs, z); emit("fma.rn.sat", c * 4, xs, saturate(f, r)); emit("fma.rn.ftz.sat", c * 4, xs, saturate(f, z)) 
        if not half:
            for m in ("rz", "rm", "rp"): emit(f"fma.{m}", c * 4, xs, arith(f, "fma", xs, m))
    for x in e:
        emit("neg", c + c, (x,), x ^ f.sign) if not is_nan(f, x) else None
        emit("abs", c + c, (x,), x & ~f.sign)
        v = f.value(x)
        about = lambda op, g: emit(op, c + c, (x,), g, True)
        real = float("nan") if v[0] == "nan" else v[1] * math.inf if v[0] == "inf" else math.copysign(float(v[1]), -1 if v[2] else 1)
        def approx(g):
            try: y = g(real)
            except (ValueError, OverflowError, ZeroDivisionError): y = float("nan")
            if y != y: return nan_of(f)
            if math.isinf(y): return f.inf | (f.sign if y < 0 else 0)
            return f.round(Q(y), "rn", math.copysign(1, y) < 0)
        if f is not f64:
            tanh = approx(math.tanh) if x != f.sign else x
            about("tanh.approx", tanh)
            e2 = approx(lambda y: math.inf if y > 1000 else 2.0 ** y)
            if f is bf16: about("ex2.approx.ftz", flush(f, e2))
            elif f is f16: about("ex2.approx", e2)
        if f in (f32, f64):
            for m in ("rn", "rz", "rm", "rp"): emit(f"rcp.{m}", c + c, (x,), arith(f, "rcp", (x,), m)); emit(f"sqrt.{m}", c + c, (x,), arith(f, "sqrt", (x,), m))
            sub = v[0] == "num" and v[1] != 0 and not x & f.inf
            for name, r in (("finite", v[0] == "num"), ("infinite", v[0] == "inf"), ("number", v[0] != "nan"), ("notanumber", v[0] == "nan"), ("normal", v[0] == "num" and not sub), ("subnormal", sub)): line(f"testp.{name}.{f.name}", "p" + c, (x,), int(r))
            sq = arith(f, "sqrt", (x,)); rs = nan_of(f) if is_nan(f, sq) else approx(lambda y: math.copysign(math.inf, real) if y == 0 else 1 / math.sqrt(y))
            about("rsqrt.approx", rs)
        if f is f64: line("rcp.approx.ftz.f64", "xx", (x,), arith(f, "rcp", (x,)), True)
        if f is f32:
            fx = flush(f, x)
            emit("neg.ftz", "ww", (x,), fx ^ f.sign) if not is_nan(f, x) else None
            emit("abs.ftz", "ww", (x,), fx & ~f.sign)
            for op in ("rcp", "sqrt"):
                z = flush(f, arith(f, op, (fx,))); emit(f"{op}.rn.ftz", "ww", (x,), z); about(f"{op}.approx", arith(f, op, (x,))); about(f"{op}.approx.ftz", z)
            for op, g in (("ex2", lambda y: math.inf if y > 1000 else 2.0 ** y), ("lg2", lambda y: -math.inf if y == 0 else math.inf if y == math.inf else math.log2(y)), ("sin", math.sin), ("cos", math.cos)):
                if op in ("sin", "cos") and abs(real) > 1e30 and real == real and not math.isinf(real): continue
                r = approx(g)
                if op == "sin" and not x & ~f.sign: r = x
                about(f"{op}.approx", r)
                real_was, real = real, (math.copysign(0.0, real) if x != fx else real)
                r2 = approx(g); r2 = fx if op == "sin" and not fx & ~f.sign else r2
                about(f"{op}.approx.ftz", flush(f, r2)); real = real_was
            real_was, real = real, (math.copysign(0.0, real) if x != fx else real)
            sq = arith(f, "sqrt", (fx,)); about("rsqrt.approx.ftz", nan_of(f) if is_nan(f, sq) else approx(lambda y: math.copysign(math.inf, real) if y == 0 else 1 / math.sqrt(y))); real = real_was

# ---- conversions
ints = [(t, n) for n in (8, 16, 32, 64) for t in "us"]
def letter(n): return L[max(n, 16)]
def reg(v, t, n): return u(s(v, n), max(n, 16)) if t == "s" else u(v, n)
for (t, n), (t2, n2) in itertools.product(ints, repeat=2):
    if (t, n) == (t2, n2) and n > 8: continue
    for a in edges(max(n2, 16)):
        x = (u if t2 == "u" else s)(a, n2)
        line(f"cvt.{t}{n}.{t2}{n2}", letter(n) + letter(n2), (a,), reg(x, t, n))
        lo, hi = (0, (1 << n) - 1) if t == "u" else (-(1 << (n - 1)), (1 << (n - 1)) - 1)
        line(f"cvt.sat.{t}{n}.{t2}{n2}", letter(n) + letter(n2), (a,), reg(max(lo, min(hi, x)), t, n))
for f, (t, n) in itertools.product((f16, bf16, f32, f64), ints):
    if n == 8 and f is bf16: continue
    for a in edges(max(n, 16)):
        x = (u if t == "u" else s)(a, n)
        for m in ("rn", "rz", "rm", "rp"): line(f"cvt.{m}.{f.name}.{t}{n}", f.letter + letter(n), (a,), f.round(Q(x), m))
    for x in specials(f) + [f.round(Q(v)) for v in (Q(255, 2), 127, 128, -128, -129, 255, 256, 32767, 32768, -32769, 65535, 2**31 - 1, 2**31, -2**31, 2**32, 2**32 - 1, 2**63, -2**63, 2**64, Q(3, 2), Q(-1, 2), Q(1, 2))]:
        v = f.value(x)
        for m, g in (("rni", round), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)):
            lo, hi = (0, (1 << n) - 1) if t == "u" else (-(1 << (n - 1)), (1 << (n - 1)) - 1)
            if v[0] == "nan": r = 1 << (n - 1) if f is f64 or n == 64 else 0
            elif v[0] == "inf": r = hi if v[1] > 0 else lo
            else: r = max(lo, min(hi, g(v[1])))
            line(f"cvt.{m}.{t}{n}.{f.name}", letter(n) + f.letter, (x,), reg(r, t, n))
def change(f, x, to, mode):
    v = f.value(x)
    if v[0] == "nan": return nan_of(to)
    if v[0] == "inf": return to.inf | (to.sign if v[1] < 0 else 0)
    return to.round(v[1], mode, v[2])
ties = {f: [f.round(Q(v)) for v in (1 + Q(1, 2**8), 1 + Q(3, 2**8), 1 + Q(1, 2**11), 1 + Q(3, 2**11), Q(65520), Q(65519), Q(1, 2**24), Q(1, 2**25), Q(3, 2**25), -1 - Q(1, 2**11), 1 + Q(1, 2**8) + Q(1, 2**23), 1 + Q(1, 2**11) + Q(1, 2**40), 1 + Q(1, 2**24) + Q(1, 2**50), 1 + Q(1, 2**24), Q(1, 3))] for f in (f16, bf16, f32, f64)}
for f, to in itertools.product((f16, bf16, f32, f64), repeat=2):
    for x in specials(f) + ties[f]:
        wider = to.m >= f.m and to.e >= f.e
        if f is not to and not (f in (f16, bf16) and to in (f16, bf16)):
            for m in ([""] if wider else ["rn.", "rz.", "rm.", "rp."]): line(f"cvt.{m}{to.name}.{f.name}", to.letter + f.letter, (x,), change(f, x, to, m[:-1] or "rn"))
            if {f, to} == {f32, f16} or {f, to} == {f32, f64}: line(f"cvt.{'' if wider else 'rn.'}sat.{to.name}.{f.name}", to.letter + f.letter, (x,), saturate(to, change(f, x, to, "rn")))
        if f is to and f is not bf16:
            for m, g in (("rni", round), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)):
                v = f.value(x)
                line(f"cvt.{m}.{f.name}.{f.name}", f.letter * 2, (x,), f.round(Q(g(v[1])), "rn", v[2]) if v[0] == "num" else nan_of(f) if v[0] == "nan" else x)
for x in specials(f32) + ties[f32]:
    line("cvt.rn.ftz.f16.f32", "hw", (x,), change(f32, flush(f32, x), f16, "rn")); line("cvt.ftz.f64.f32", "xw", (x,), change(f32, flush(f32, x), f64, "rn"))
    line("cvt.rzi.ftz.s32.f32", "ww", (x,), 0 if is_nan(f32, x) else u(max(-2**31, min(2**31 - 1, math.trunc(f32.value(x)[1]))) if f32.value(x)[0] == "num" else (2**31 - 1 if f32.value(x)[1] > 0 else -2**31), 32))
    y = f32.round(Q(-3, 7))
    for g in (f16, bf16):
        a, b = change(f32, x, g, "rn"), change(f32, y, g, "rn")
        line(f"cvt.rn.{g.name}x2.f32", "www", (x, y), a << 16 | b)
        line(f"cvt.rn.relu.{g.name}x2.f32", "www", (x, y), (a if is_nan(g, a) or not a & g.sign else 0) << 16)
    tf32 = F("tf32", 8, 10, "w")
    for m in ("rna", "rn", "rz"):
        v = f32.value(x)
        line(f"cvt.{m}.tf32.f32", "ww", (x,), f32.nan if v[0] == "nan" else x if v[0] == "inf" else tf32.round(v[1], m, v[2]) << 13)
class F8(F):
    def finite(self, f, x):
        v = f.value(x); most = 0x7e if self.name == "e4m3" else 0x7b
        if v[0] == "nan": return 0x7f
        if v[0] == "inf": return most | (0x80 if v[1] < 0 else 0)
        wide = F(self.name, self.e + 1, self.m, "h"); q = wide.value(wide.round(abs(v[1])))
        biggest = Q(448) if self.name == "e4m3" else Q(57344)
        # rounded with an unbounded exponent: subnormals by hand
        unit = Q(2) ** (1 - self.bias - self.m)
        a = abs(v[1])
        if a < Q(2) ** (1 - self.bias):
            n, rest = divmod(a, unit); n = int(n) + (rest * 2 > unit or (rest * 2 == unit and int(n) % 2)); b = n
        else:
            if q[0] == "inf" or q[1] > biggest: b = most
            else:
                e = 0
                while Q(2) ** (e + 1) <= q[1]: e += 1
                while Q(2) ** e > q[1]: e -= 1
                b = (e + self.bias) << self.m | int((q[1] / Q(2) ** e - 1) * (1 << self.m))
        return b | (0x80 if v[2] else 0)
    def value8(self, b):
        if self.name == "e4m3":
            if b & 0x7f == 0x7f: return ("nan",)
            e, m = b >> 3 & 15, b & 7
            q = Q(m + (8 if e else 0)) * Q(2) ** (max(e, 1) - 7 - 3)
            return ("num", -q if b & 128 else q, bool(b & 128))
        return self.value(b)
for g in (F8("e4m3", 4, 3, "h"), F8("e5m2", 5, 2, "h")):
    values = specials(f32) + ties[f32] + [f32.round(Q(v)) for v in (448, 464, 465, 480, -449, 57344, 61440, 61439, 17, 18, Q(17, 16), Q(19, 16), Q(1, 2**9), Q(1, 2**10), Q(3, 2**10), Q(1, 2**16), Q(1, 2**17), Q(3, 2**17), Q(-5, 2**10))]
    for x in values: line(f"cvt.rn.satfinite.{g.name}x2.f32", "hww", (x, values[7]), g.finite(f32, x) << 8 | g.finite(f32, values[7]))
    for x in specials(f16): line(f"cvt.rn.satfinite.{g.name}x2.f16x2", "hw", (x << 16 | 0x3c00,), g.finite(f16, x) << 8 | g.finite(f16, 0x3c00))
    for b in range(256):
        v = g.value8(b); r = f16.nan if v[0] == "nan" else f16.inf | (f16.sign if v[1] < 0 else 0) if v[0] == "inf" else f16.round(v[1], "rn", v[2])
        line(f"cvt.rn.f16x2.{g.name}x2", "wh", (b << 8 | 0x38,), r << 16 | (f16.round(g.value8(0x38)[1])))
# At most so many cases of an operation, spread over those above.
most = int(sys.argv[2]) if len(sys.argv) > 2 else 16
groups = {}
for name, case in out: groups.setdefault(name, {})[case] = None
with open(sys.argv[1], "w") as file:
    for name, cases in groups.items():
        cases = list(cases)
        file.write(name + "\n" + "".join(f" {c}\n" for c in (cases if len(cases) <= most else [cases[k * len(cases) // most] for k in range(most)])))
