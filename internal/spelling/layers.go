package spelling

import (
	"regexp"
	"strconv"
)

// Names of lists of layers, as alternatives of a regular expression. A dot and the number of the layer follow the name.
const (
	Layers      = "layers"             // in transformers and in the order
	ModuleLists = Layers + "|h|blocks" // in modules of PyTorch
	LayerLists  = ModuleLists + "|blk" // in modules and in GGUF
)

// Words before the number of a layer in names of any form, such as "block_3", as alternatives of a regular expression.
const LayerWords = "layers?|blocks?|blk"

// HiddenStates is the list of states that transformers returns: one before the first layer, and one after each layer.
const HiddenStates = "hidden_states"

var inLayer = regexp.MustCompile(`(?:^|\.)(?:` + LayerLists + `)\.([0-9]{1,9})\.`)

// Layer is the number of the layer in a name such as "blk.3.attn_q", and the place of its digits: name[from:to]. The number is −1 for a name
// in no layer, and for the name of a layer itself.
func Layer(name string) (number, from, to int) {
	at := inLayer.FindStringSubmatchIndex(name)
	if at == nil {
		return -1, 0, 0
	}
	number, _ = strconv.Atoi(name[at[2]:at[3]]) // nine digits at most, so no error
	return number, at[2], at[3]
}
