package health

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// knob is a sampling setting of generation_config.json: the condition in words, and a check of a value as encoding/json returns it.
type knob struct {
	name string
	want string
	ok   func(value any) bool
}

// knobs are the settings that decide the next token, with transformers' bounds.
var knobs = []knob{
	{"do_sample", "true or false", func(v any) bool { _, ok := v.(bool); return ok }},
	{"temperature", "a number, 0 or more", func(v any) bool { n, ok := v.(float64); return ok && n >= 0 }},
	{"top_k", "a whole number, 0 or more", func(v any) bool { n, ok := v.(float64); return ok && n >= 0 && n == math.Trunc(n) }},
	{"top_p", "a number from 0 to 1", func(v any) bool { n, ok := v.(float64); return ok && n >= 0 && n <= 1 }},
}

// sampling shows how generate chooses tokens. Two engines that sample go on differently, with the same logits.
func sampling(s *Section, data []byte) {
	var all map[string]any
	if json.Unmarshal(data, &all) != nil {
		return // said of the ids
	}
	var shown []string
	for _, k := range knobs {
		v := all[k.name]
		if v == nil { // not there, or null
			continue
		}
		text, err := json.Marshal(v)
		if err != nil || !k.ok(v) {
			s.Fail("transformers refuses or ignores it, and other engines may use it: correct the file", "%s: %s is %.60s, want %s", generationFile, k.name, text, k.want)
			continue
		}
		shown = append(shown, fmt.Sprintf("%s %s", k.name, text))
	}
	if zero, ok := all["temperature"].(float64); ok && zero == 0 && all["do_sample"] == true {
		s.Fail("do_sample = false chooses the most likely token", "%s: temperature is 0 and do_sample is true: logits are divided by it", generationFile)
	}
	if len(shown) > 0 {
		s.OK("%s: %s; captures are greedy whatever it says", generationFile, strings.Join(shown, ", "))
	}
}
