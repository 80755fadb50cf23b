// Package capture holds the trace: what one run of a model left behind, its named tensors in the order in which
// they were computed and a manifest that says what was run. A [Writer] makes one while the model runs, in constant
// memory; [Open] reads one lazily, at the cost of its header.
//
// # The file
//
// A trace is a safetensors file, so that any library for that format opens it, with four promises that
// safetensors does not make. They are all that a writer in another language has to keep.
//
// Order. Tensors stand in the file, and their entries in the header, in the order of execution. The data of the
// first starts at 0, each next one where the one before ended. Files of other writers are not trusted for order,
// since the common writers sort by dtype and name.
//
// Keys. A tensor's key is [pass<k>/]<name>[#<n>], see [Key]. Pass k counts forward calls: 0 is the prefill, then one
// each decode step. n counts the firings of one name within one pass, from 0. "pass0/" and "#0" are not written,
// numbers have no leading zeros. A name is not empty, is valid UTF-8, contains neither '/' nor '#', and is not
// "__metadata__". Passes only go forward, and #n follows #n-1. In a trace of a training run a pass is a step; there
// "loss" is a name, and a name behind "grad/" is the gradient of what has that name.
//
// Metadata. All keys start with "tracediff." and all values are strings; where a value is JSON it is the text of
// it. The first entry of the header is "__metadata__", its first two keys are version and status, and nothing in
// the header up to the status is white space. A missing key means undeclared, which never counts as a difference.
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
//	tracediff.program   "sha256:" and the digest of the program beside the trace, NAME.program.json, as it was recorded
//	tracediff.scope     JSON of Scope: {"level":2,"layers":"0-3,7","tensors":["*.mlp.*"],"passes":"0-","positions":"0-15"};
//	                    only level must be there
//	tracediff.entries   JSON list of strings: the names of one pass that are in scope, in order
//	tracediff.derived   JSON list of strings: those of them that the capturing side recomputed itself
//	tracediff.fused     JSON list of strings: the modules whose attention was one kernel, so that their scores and probabilities were never
//	                    made, as paths or patterns: ["layers.0.self_attn"], ["*.self_attn"]
//	tracediff.prompt    the text that was tokenized
//	tracediff.dtype     the model's dtype as torch names it, "bfloat16"
//	tracediff.device    "cpu", "cuda:0"
//	tracediff.passes    how many forward calls the run makes, in decimal digits
//	tracediff.axes      JSON object, name to axes, such as "b t h d", for names whose axes are not the order's
//
// Weights. Their digest is the SHA-256 of one line a weight file, in the order of the names: the file's digest in hexadecimal, two spaces, its
// name, a line feed. After "sha256:" that of a file is its SHA-256; after "chunks:", for weights of more than 128 MiB, the SHA-256 of the
// SHA-256 digests, 32 bytes each, of its chunks of 8 MiB, the last of which may be shorter.
//
// Token ids and positions are no metadata but ordinary I64 tensors named input_ids and position_ids.
//
// Status. The value takes 240 bytes ([StatusWidth]), padded on the right with spaces that readers strip, and holds no
// quote, backslash or control character, so that one write in place changes it. Whoever reads a trace whose status
// is not "complete" reads what a run had written when it stopped.
//
// # Writing
//
// The file grows at NAME.safetensors.part. The header is written once with room to spare (spaces at its end). For
// each tensor the data are appended to the file first; then one write turns the header's closing brace into a
// comma, the entry and a closing brace. So between any two appends the file is a valid safetensors file, and a
// process that is killed leaves at worst half an entry, or data without one, at the end: never a wrong tensor. When
// the room is used up the file is copied once, with a header twice as long, and renamed over the old one. At the
// end the data are synced, the status becomes "complete", that is synced, and the file gets its name. Against a
// power cut nothing before that is promised.
//
// While a run writes NAME.safetensors it holds a lock on NAME.safetensors.lock (flock, on Unix), so a second run
// that would write the same trace is refused. The lock goes with the process: what a killed run left as .part is
// replaced by the next run.
//
// # Reading
//
// A complete trace is read strictly: one byte too many or too few is an error. In a trace that is not complete a
// last entry that is cut off, and data that no entry lists, are left out, and [Trace.Notes] says so. Everything
// else that is wrong is an error there too. Safetensors files of other writers open as well, read strictly, with
// their keys as names and with [Trace.Sequence] false.
package capture
