// Package functions says how far functions of float32 libraries may be off. None of them is correctly rounded anywhere: two engines
// that are right differ by as much as both may be off, and what is computed from a function carries its error on.
//
// An error is a number of units of 2⁻²⁴ of the right result, whose own rounding to float32 is one of them. A unit in the last
// place (ulp) of float32 is one unit of a result just below a power of two and two units of one just above: a library that states
// n ulp may be off by 2n units.
package functions

// Error is how far a function may be off.
type Error struct {
	Function string
	Range    string  // of its arguments, in words
	Units    float64 // of 2⁻²⁴ of the right result, or of 1 where Absolute
	Absolute bool    // whatever the size of the result
	Measured string  // the largest errors that were found, in the same units
	Stated   string  // what libraries state
}

// What the evaluation of programs allows for, in units of 2⁻²⁴. Table has the sources.
const (
	Exp = 4
	Log = 4
	// LogOfBase is that of the base of a rotary embedding.
	LogOfBase = 2
	Power     = 3 // of any base and exponent
	// PowerOfBase is that of the base of a rotary embedding to an exponent between −1 and 1; PowerOnGPU the same on a GPU.
	PowerOfBase = 2
	PowerOnGPU  = 8
	Cosine      = 4
	Sine        = 4
	Rsqrt       = 3
	Tanh        = 7
	Erf         = 3
	Sigmoid     = 4
	// FusedErf is what an error function within a GELU may be off by, in units of 1: loops that engines fuse compute it as
	// 1 − t·p(t)·exp(−x²), t = 1/(1 + 0.3275911·|x|), p the polynomial of Abramowitz and Stegun 7.1.26. Near x = 0 what is subtracted
	// is near 1.
	FusedErf = 12
	// FastLog2 is what a fast logarithm to the base 2 of a number between 1/2 and 2 may be off by, in units of 1.
	FastLog2 = 4
	// Quantile is for a constant that a library computes once, for example a quantile of the normal distribution.
	Quantile = 3
)

// Table has every error that is allowed for, and where each number comes from. What is measured: testdata/measure.py, two million
// arguments each, torch 2.15 (AVX2 and AVX-512 gave the same), numpy 2.4, glibc 2.41.
var Table = []Error{
	{"exp", "−87 to 20", Exp, false, "numpy 3.4, torch 1.1, glibc 1.0", "numpy 2.52 ulp (its loops for AVX2 and AVX-512); SLEEF 1.0 ulp; CUDA 1 ulp"},
	{"log, log(1+x), exp(x)−1", "all", Log, false, "numpy 3.8, torch 1.5, glibc 1.2", "numpy 3.83 ulp near 1; SLEEF 1.0 ulp; CUDA 1 ulp"},
	{"log", "1.1 to 10⁷", LogOfBase, false, "numpy 1.1, torch 1.1, glibc 1.0", "SLEEF 1.0 ulp; CUDA 1 ulp"},
	{"pow", "all", Power, false, "numpy 1.8, torch 1.0, glibc 1.0", "SLEEF 1.0 ulp; one unit more is for other libraries"},
	{"pow", "a base of 1 or more, an exponent from −1 to 1, on a CPU", PowerOfBase, false, "numpy 1.8, torch 1.0, glibc 1.0", "SLEEF 1.0 ulp"},
	{"pow", "the same, on a GPU", PowerOnGPU, false, "", "CUDA 4 ulp (programming guide, table of powf)"},
	{"cos", "angles of positions to 32,768", Cosine, false, "numpy 2.6, torch 1.1, glibc 1.1", "CUDA 2 ulp; numpy 1.49 ulp; SLEEF 1.0 and 3.5 ulp (two forms)"},
	{"sin", "angles of positions to 32,768", Sine, false, "numpy 2.1, torch 1.1, glibc 1.1", "CUDA 2 ulp; numpy 1.49 ulp; SLEEF 1.0 and 3.5 ulp (two forms)"},
	{"x^(−1/2)", "2e-9 to 5e8", Rsqrt, false, "torch 1.5", "as 1/√x two roundings; one unit more is for other libraries"},
	{"tanh", "−20 to 20", Tanh, false, "ONNX Runtime 1.31 5.5, glibc 2.7, numpy 1.9, torch 1.0", "a quotient of polynomials in float32: Eigen, MLAS"},
	{"sigmoid", "−20 to 20", Sigmoid, false, "ONNX Runtime 1.31 2.9, torch 2.5", "½ + tanh(x/2)/2 in Eigen and MLAS"},
	{"erf", "within a GELU that is one loop", FusedErf, true, "torch's GELU 9.2; erf only: torch 1.2, glibc 1.3, relative", "Abramowitz and Stegun 7.1.26: 1.5e-7, which is 2.5 units"},
	{"log₂, fast", "½ to 2", FastLog2, true, "", "CUDA __log2f 2⁻²² (programming guide, intrinsic functions)"},
	{"quantile of the normal distribution", "a constant of a formula", Quantile, false, "", "two units of a library, and its rounding"},
}
