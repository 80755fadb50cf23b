package gate

// Class is the kind of a mismatch.
type Class string

// The classes, in the order in which they win where several apply.
const (
	Shape     Class = "SHAPE"     // other sizes, or axes that both sides declare and that differ
	NonFinite Class = "NONFINITE" // NaN or Inf in different places
	Value     Class = "VALUE"     // an error beyond its limit, or other elements masked
	DType     Class = "DTYPE"     // see Options.StrictDType
	Absent    Class = "MISSING"   // of no row: see Result.Missing
)
