// Package capture holds the trace of one run of a model: named tensors in the order in which they were computed, and a manifest that describes
// the run. A [Writer] makes a trace while the model runs, in constant memory. [Open] reads only the header; tensors are read on request.
//
// # The file
//
// A trace is a safetensors file, so that any library for safetensors opens it. A writer in another language has to keep four promises that
// safetensors does not make: order, keys, metadata and status.
//
// Order. Tensors stand in the file, and their entries in the header, in the order of execution. The data of the first tensor start at 0, and
// the data of each later tensor start where the data before them end. Files of other writers are not trusted for order, since the common
// writers sort by dtype and name.
//
// Keys. A tensor's key is [pass<k>/]<name>[#<n>], see [Key]. Pass k counts forward calls: 0 is the prefill, and each decode step is one more.
// n counts the firings of one name within one pass, from 0. "pass0/" and "#0" are not written, and numbers have no leading zeros. A name is
// not empty, is valid UTF-8, contains neither '/' nor '#', and is not "__metadata__". Passes only go forward, and #n follows #n-1. In a trace
// of a training run a pass is a step. There "loss" is a name, and "grad/" before the name of a tensor makes the name of its gradient.
//
// Metadata. All keys start with "tracediff." and all values are strings, which may be the text of JSON. The first entry of the header is
// "__metadata__", the first two keys of "__metadata__" are version and status, and the header has no white space before the end of the status.
// A missing key means undeclared, and undeclared never counts as a difference.
//
//	tracediff.version   "1"
//	tracediff.status    "open", "complete" or "failed: " and why; see below
//	tracediff.sequence  "execution": the file keeps the promise of order
//	tracediff.side      "local" or "reference"
//	tracediff.producer  JSON: {"name":"transformers","version":"5.23.0","details":{"torch":"2.15.0"}}; details may be missing
//	tracediff.model     what was run, for people: a path or a name
//	tracediff.config    JSON object: the model's config with every default resolved
//	tracediff.weights   "sha256:" or "chunks:" and 64 hexadecimal digits, or "unknown"; see below
//	tracediff.port      JSON: {"file":"port.gguf","wrong":"1 tensor is wrong, first …"}: the model was run with the weights of a port's file;
//	                    wrong may be missing
//	tracediff.program   "sha256:" and the digest of the recorded program, NAME.program.json in the folder of the trace
//	tracediff.scope     JSON of Scope: {"level":2,"layers":"0-3,7","tensors":["*.mlp.*"],"passes":"0-","positions":"0-15"};
//	                    only level must be there
//	tracediff.entries   JSON list of strings: the names of one pass that are in scope, in order
//	tracediff.derived   JSON list of strings: the names that the capturing side recomputed from other tensors
//	tracediff.fused     JSON list of strings: the modules whose attention was one kernel, so that their scores and probabilities were never
//	                    made, as paths or patterns: ["layers.0.self_attn"], ["*.self_attn"]
//	tracediff.prompt    the text that was tokenized
//	tracediff.dtype     the model's dtype as torch names it, "bfloat16"
//	tracediff.device    "cpu", "cuda:0"
//	tracediff.passes    how many forward calls the run makes, in decimal digits
//	tracediff.axes      JSON object, name to axes, such as "b t h d", for names whose axes differ from the order
//
// The digest of the weights is the SHA-256 of one line for each weight file, sorted by file name: the digest of the file in hexadecimal, two
// spaces, the name of the file, a line feed. With "sha256:" the digest of a file is its SHA-256. With "chunks:", for weights of more than 128
// MiB, the digest of a file is the SHA-256 of the SHA-256 digests (32 bytes each) of the file's chunks of 8 MiB; the last chunk may be
// shorter.
//
// Token ids and positions are not metadata. They are ordinary I64 tensors named input_ids and position_ids.
//
// Status. The value takes 240 bytes ([StatusWidth]), padded on the right with spaces that readers strip, and holds no quote, backslash or
// control character, so that one write in place changes the status. A trace whose status is not "complete" has the tensors that the run had
// written when the run stopped.
//
// # Writing
//
// The file grows at NAME.safetensors.part. The header is written once with room to spare (spaces at its end). For each tensor the data are
// appended to the file first; then one write turns the header's closing brace into a comma, the entry and a closing brace. So the file is a
// valid safetensors file between any two appends. A killed process leaves at worst half an entry, or data without an entry, at the end: never
// a wrong tensor. When the room is used up, the file is copied once, with a header twice as long, and renamed over the old file. At the end
// the data are synced, the status becomes "complete" and is synced, and the file gets its final name. Before the end, nothing is promised
// against a power cut.
//
// While a run writes NAME.safetensors, the run holds a lock on NAME.safetensors.lock (flock, on Unix), so a second run that would write the
// same trace is refused. The lock ends with the process: the next run replaces the .part file of a killed run.
//
// # Reading
//
// A complete trace is read strictly: one byte too many or too few is an error. In a trace that is not complete, a last entry that is cut off,
// and data that no entry lists, are left out, and [Trace.Notes] says so; every other defect is an error, too. Safetensors files of other
// writers open as well, read strictly, with their keys as names and with [Trace.Sequence] false.
package capture
