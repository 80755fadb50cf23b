package settings

import (
	"github.com/tracediff/tracediff/capture/mapping"
)

// AskedWeights says which checkpoint of a port is compared with which original.
type AskedWeights struct {
	Local    string // a file, or a folder
	Model    string // the original: a folder as Hugging Face writes it
	Map      string // a file with a table [weights]; empty: none
	Workers  int
	Progress func(done, all int64) // bytes; may be nil

	Table *mapping.Map // of tracediff.toml, where Map is empty
}
