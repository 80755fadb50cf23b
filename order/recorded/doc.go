// Package recorded reads the program of a model that was recorded as it ran, and says each of its operations as a formula.
//
// The file is that of docs/program-format.md. [Read] expands its templates and trusts nothing that it says: a step reads earlier
// ones alone, a view stays within what it looks at, sizes are those of a model.
//
// How a program becomes entries of an order:
//
//   - A result that has a name is the entry of that name, in the shape that the name gives it. A result without a name is an entry too,
//     of level [Unnamed], called by the next name and its operation: "layers.0.input_layernorm:rsqrt". Nobody captures that, so a
//     cut goes through it to the captured tensors behind it.
//   - A second name of a result, and the name of a part of one, is an entry whose operation is a view. A step reads the last
//     entry that shows all of the value, or just the part that it reads: so a fault between two names of one tensor is seen.
//   - Every pass has its own operations. What a step reads of an earlier pass, as a cache, is an input of that pass.
//   - Each operation is an [Op]: torch's name, what its operands are, and views. Its formula is made of the primitives of
//     order/program on strided views. What an entry shows is rounded to its recorded dtype; the model's dtype stands for whichever
//     the model runs in, so a program of bfloat16 holds for a trace of float32 where the model has no dtype of its own there.
//   - Token ids and positions that have a name are arguments. Other constants are numbers of the program.
//   - An operation without a formula, or with a setting that its formula does not have, is [Unknown]. So is one that reads a weight
//     that is no tensor of the checkpoint. What needs its result cannot be verified, and nothing else is touched by it.
//   - Operands that do not go together are an error of the whole file, as the formula's shapes are worked out when it is read.
package recorded
