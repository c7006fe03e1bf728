/* What Wine 8's ucrtbase.dll only stubs and numpy calls: the C99 complex functions of the Universal
   CRT. On x64 its 8-byte struct travels in a register, the 16-byte one by reference, and long
   double is double. Each x_NAME becomes NAME of the stand-in DLL. */
#include <complex.h>
#include <math.h>

typedef struct { double re, im; } Wide;
typedef struct { float re, im; } Narrow;

static double _Complex gnu(Wide z)
{
    double _Complex r;
    __real__ r = z.re;
    __imag__ r = z.im;
    return r;
}
static Wide from_gnu(double _Complex z) { Wide r = {__real__ z, __imag__ z}; return r; }
static Wide widen(Narrow z) { Wide r = {z.re, z.im}; return r; }
static Narrow narrow(Wide z) { Narrow r = {(float)z.re, (float)z.im}; return r; }

#define REAL(name, value) \
    double x_##name(Wide z) { return value; } \
    double x_##name##l(Wide z) { return x_##name(z); } \
    float x_##name##f(Narrow z) { return (float)x_##name(widen(z)); }
REAL(creal, z.re)
REAL(cimag, z.im)
REAL(cabs, hypot(z.re, z.im))
REAL(carg, atan2(z.im, z.re))
REAL(norm, z.re *z.re + z.im * z.im)

#define COMPLEX(name) \
    Wide x_##name(Wide z) { return from_gnu(name(gnu(z))); } \
    Wide x_##name##l(Wide z) { return x_##name(z); } \
    Narrow x_##name##f(Narrow z) { return narrow(x_##name(widen(z))); }
COMPLEX(cexp) COMPLEX(clog) COMPLEX(csqrt) COMPLEX(conj) COMPLEX(cproj)
COMPLEX(csin) COMPLEX(ccos) COMPLEX(ctan) COMPLEX(csinh) COMPLEX(ccosh) COMPLEX(ctanh)
COMPLEX(casin) COMPLEX(cacos) COMPLEX(catan) COMPLEX(casinh) COMPLEX(cacosh) COMPLEX(catanh)

Wide x_cpow(Wide a, Wide b) { return from_gnu(cpow(gnu(a), gnu(b))); }
Wide x_cpowl(Wide a, Wide b) { return x_cpow(a, b); }
Narrow x_cpowf(Narrow a, Narrow b) { return narrow(x_cpow(widen(a), widen(b))); }
Wide x__Cbuild(double re, double im) { Wide z = {re, im}; return z; }
Wide x__LCbuild(double re, double im) { Wide z = {re, im}; return z; }
Narrow x__FCbuild(float re, float im) { Narrow z = {re, im}; return z; }
Wide x__Cmulcc(Wide a, Wide b) { return from_gnu(gnu(a) * gnu(b)); }
Wide x__LCmulcc(Wide a, Wide b) { return x__Cmulcc(a, b); }
Narrow x__FCmulcc(Narrow a, Narrow b) { return narrow(x__Cmulcc(widen(a), widen(b))); }
Wide x__Cmulcr(Wide a, double b) { Wide z = {a.re * b, a.im * b}; return z; }
Wide x__LCmulcr(Wide a, double b) { return x__Cmulcr(a, b); }
Narrow x__FCmulcr(Narrow a, float b) { Narrow z = {a.re * b, a.im * b}; return z; }
