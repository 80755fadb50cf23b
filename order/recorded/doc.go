// Package recorded reads the program of a model, recorded while the model ran, and turns every operation into a
// formula.
//
// docs/formats.md describes the file. [Read] expands the templates and checks every claim of the file: a step
// reads only earlier steps, a view stays within its tensor, sizes are sizes of a model.
//
// How a program becomes entries of an order:
//
//   - A result that has a name is the entry of that name, in the shape that the name gives it. A result without a name is an entry
//     of level [Unnamed], called by the next name and its operation: "layers.0.input_layernorm:rsqrt". Nobody captures an unnamed
//     entry, so a cut goes through it to the captured tensors before it.
//   - A second name of a result, and the name of a part of a result, is an entry whose operation is a view. A step reads the last
//     entry that shows the whole value, or only the part that the step reads: so a fault between two names of one tensor is seen.
//   - Every pass has its own operations. A tensor of an earlier pass that a step reads, such as a cache, is an input of that pass.
//   - Each operation is an [Op]: torch's name, the kinds of its operands, and views. The formula is built from the primitives of
//     order/program on strided views. The values of an entry are rounded to the recorded dtype; the model's dtype stands for
//     whichever the model runs in, so a program of bfloat16 holds for a trace of float32 where the model has no dtype of its own there.
//   - Token ids and positions that have a name are arguments. Other constants are numbers of the program.
//   - An operation without a formula, or with a setting that the formula does not support, is [Unknown]. So is an operation that
//     reads a weight that the checkpoint does not have. Only results that depend on an unknown operation cannot be verified.
//   - Operands that do not go together are an error of the whole file: the shapes of a formula are worked out when the file is read.
package recorded
