package order

import (
	"strings"

	"github.com/tracediff/tracediff/hooks"
)

// insideAttention are the entries that a fused attention kernel keeps to itself, by their names below the attention module: rotated queries and
// keys, the keys and values of all positions, scores and probabilities.
var insideAttention = map[string]bool{
	"q_rope": true, "k_rope": true, "keys": true, "values": true,
	"scores": true, "scores_softcap": true, "scores_masked": true, "probs_f32": true, "probs": true,
}

// Unmade returns the entries that an engine with fused attention kernels does not compute: the entries inside the
// fused modules, and masks that only these modules read. fused has the modules' paths, such as "layers.3.self_attn",
// or patterns of paths in the syntax of [hooks.Match]. A kernel takes keys and values as inputs, so an engine may
// still show keys and values.
func (l *List) Unmade(fused []string) map[string]bool {
	unmade := map[string]bool{}
	if len(fused) == 0 {
		return unmade
	}
	for i := range l.Entries {
		name := l.Entries[i].Name
		at := strings.LastIndexByte(name, '.')
		if at < 0 || !insideAttention[name[at+1:]] {
			continue
		}
		for _, pattern := range fused {
			if hooks.Match(pattern, name[:at]) {
				unmade[name] = true
				break
			}
		}
	}
	read := map[string]bool{} // by an entry that is made
	for i := range l.Entries {
		if e := &l.Entries[i]; !unmade[e.Name] {
			for _, from := range e.Inputs {
				read[from.Name] = true
			}
		}
	}
	for i := range l.Entries {
		if name := l.Entries[i].Name; strings.HasPrefix(name, "mask.") && !read[name] {
			unmade[name] = true
		}
	}
	return unmade
}
