package report

import "fmt"

// Shard is the part of a gate that a document has. Prompt i, counted from 0 in the order of tracediff.toml, is run by shard i mod Of.
type Shard struct {
	Index   int      `json:"index"`   // from 0
	Of      int      `json:"of"`      // how many shards there are
	Config  string   `json:"config"`  // the file that says what is compared, as it was typed
	Prompts []string `json:"prompts"` // of all shards together, in the order of the file
	// Settings are what the runs of all shards were asked for: keys of tracediff.toml and flags, with their values.
	Settings map[string]string `json:"settings"`
}

// String is the shard as it is typed: "0/4".
func (s *Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Own are the prompts that the shard runs, in the order of the file.
func (s *Shard) Own() []string {
	own := []string{}
	for i := s.Index; i < len(s.Prompts); i += s.Of {
		own = append(own, s.Prompts[i])
	}
	return own
}
