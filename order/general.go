package order

import (
	"encoding/json"
	"fmt"
)

// General is what any config.json says of a text model, also of one whose family no order describes: its type, the ids that it
// takes, its dtype, and its numbers of layers and channels. It says nothing of the arithmetic, and is no configuration of a [List].
type General struct {
	Config
	// File is config.json as JSON without spaces, its keys sorted: two checkpoints of a family that is not described have one
	// configuration where these are equal.
	File json.RawMessage
}

// ReadGeneral reads config.json. A vocabulary or a number of positions that it does not say is the largest that there can be; layers
// and channels that it does not say are 0. The error names the field.
func ReadGeneral(data []byte) (*General, error) {
	var top map[string]json.RawMessage
	var all map[string]any
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	delete(all, "transformers_version") // of the program that wrote the file
	g := &General{}
	var err error
	if g.File, err = json.Marshal(all); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	f := fields{m: top}
	g.ModelType = f.text("model_type", "")
	if nested, ok := f.object("text_config"); ok {
		f = fields{m: nested, outer: top, err: f.err}
		g.ModelType = f.text("model_type", g.ModelType)
	}
	first := func(otherwise int, names ...string) int {
		for _, name := range names {
			if n := f.int(name, 0); n != 0 {
				return n
			}
		}
		return otherwise
	}
	g.VocabSize = first(maxSize, "vocab_size")
	g.MaxPositions = first(maxSize, "max_position_embeddings", "n_positions", "max_seq_len")
	g.NumLayers = first(0, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
	g.HiddenSize = first(0, "hidden_size", "n_embd", "d_model")
	o := f.outerFirst()
	g.Tokens = TokenIDs{BOS: o.int("bos_token_id", -1), PAD: o.int("pad_token_id", -1), EOS: o.ints("eos_token_id")}
	g.DType = o.text("dtype", o.text("torch_dtype", ""))
	for _, e := range []error{f.err, o.err} {
		if e != nil {
			return nil, fmt.Errorf("reading config.json: %w", e)
		}
	}
	return g, nil
}
