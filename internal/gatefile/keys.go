package gatefile

import (
	"regexp"
	"strings"

	"github.com/tracediff/tracediff/internal/hint"
)

// keyOf are the keys of tracediff.toml that are flags of other commands, by the flag.
var keyOf = map[string]string{
	"--model": "model", "--dtype": "dtype", "--local": "local", "--reference": "reference", "--order": "order", "--program": "program",
	"--level": "level", "--layers": "layers", "--tensors": "tensors", "--passes": "passes", "--positions": "positions",
	"--prompt": "text", "--tokens": "tokens", "--chat": "chat", "--max-new-tokens": "max_new_tokens",
}

// The subject of an error is the flag at the beginning of its text; a flag inside a quoted command is not. A hint
// may name a flag anywhere except in an example command.
var (
	flagAhead  = regexp.MustCompile(`^--[a-z-]+( and --[a-z-]+)?`)
	flagInHint = regexp.MustCompile(`--[a-z-]+( \{)?`)
	// exampleFlag is a flag with a quoted value. tracediff.toml writes it as key = "value".
	exampleFlag = regexp.MustCompile(`--(local|reference) '([^'"]*)'`)

	aFlag = regexp.MustCompile(`--[a-z-]+`)
)

// keyedError is an error in the words of tracediff.toml.
type keyedError struct {
	error
	text string
}

func (e keyedError) Error() string { return e.text }
func (e keyedError) Unwrap() error { return e.error }

// InKeys rewrites an error and its hint from flags to the keys of tracediff.toml, since the author of the file
// typed no flags. nil stays nil. A hint with a command of this program keeps its flags.
func InKeys(err error) error {
	if err == nil {
		return nil
	}
	key := func(flag string) string {
		if k, ok := keyOf[flag]; ok {
			return k
		}
		return flag
	}
	text := flagAhead.ReplaceAllStringFunc(err.Error(), func(ahead string) string { return aFlag.ReplaceAllStringFunc(ahead, key) })
	next := configHint(err)
	if !strings.Contains(next, "tracediff ") {
		next = exampleFlag.ReplaceAllString(next, `$1 = "$2"`)
		next = flagInHint.ReplaceAllStringFunc(next, key)
	}
	return hint.Add(keyedError{error: err, text: text}, next)
}
