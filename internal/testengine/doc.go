// Package testengine is an inference engine for tests: it computes a model as a foreign engine would, and writes a
// trace of the run.
//
// The package tests order/program and shares no code with it. From the order it takes the inputs of each entry and
// the constants of each operation. Formulas are plain Go loops: each step is computed in float64 and rounded to
// float32. Only the reader of weights, the writer of traces and the rounding to 16 bits are the project's own.
//
// Engines differ as real engines do, and are drawn at random: [Kernels] has the order of sums and the library,
// [Arithmetic] the rounding points and the choice between equal formulas, [Turner] the way to make rotary tables.
// [Draw] draws an engine by one of [Names], including the arithmetics of mlx-lm and keras-hub. [DrawHabits] draws
// an arithmetic unknown in any real engine. [CaseOf] draws a model, a prompt and an engine from a number, so a
// failing test can name its case.
//
// A [Damage] plants a mistake of a port: a [Mistake] at some entries computes them with another constant, weight,
// operation or formula, in the engine's own roundings. A [Run] also computes the undamaged results, and so knows
// the damaged elements. [Plant] plants a mistake by a number.
//
// Tests without a need for an engine find helpers here too: [Build] writes and opens a trace, [OpenGolden] opens a
// golden trace.
//
// Only tests import the package.
package testengine
