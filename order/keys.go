package order

import (
	"encoding/json"
	"strings"
)

// Key is how config.json spells a field of [Config.Canonical]: the settings of a rotary embedding stand in one of several places. A
// configuration that was not read from such a file, as that of a trace, has them by layer type only where it has two embeddings.
func (c *Config) Key(canonical string) string {
	if key, ok := c.keys[canonical]; ok {
		return key
	}
	if rest, ok := strings.CutPrefix(canonical, ropeKey+Full+"."); ok && c.singleRope() {
		return ropeKey + rest
	}
	return canonical
}

const ropeKey = "rope_parameters."

// ropeKeys are the keys of rotary settings by their canonical ones: of the first object that has a key, as [fields.rope] reads them.
func (f *fields) ropeKeys(c *Config) map[string]string {
	keys := map[string]string{}
	params, _ := f.object("rope_parameters")
	scaling, scaled := f.object("rope_scaling")
	set := fields{m: params}
	for _, t := range []string{Full, Sliding} {
		of, _ := set.object(t)
		for _, name := range []string{"rope_theta", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"} {
			has := func(o map[string]json.RawMessage) bool { v, ok := o[name]; return ok && string(v) != "null" }
			canonical := ropeKey + t + "." + name
			theta := name == "rope_theta"
			switch {
			case t == Full && scaled && has(scaling):
				keys[canonical] = "rope_scaling." + name
			case c.singleRope() && !scaled && has(params):
				keys[canonical] = ropeKey + name
			case !c.singleRope() && has(of):
				keys[canonical] = canonical
			case theta && t == Sliding:
				keys[canonical] = "rope_local_base_freq"
			case theta:
				keys[canonical] = name
			}
		}
	}
	return keys
}
