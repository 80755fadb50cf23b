package baseline

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/tomlfile"
	"github.com/tracediff/tracediff/internal/tracekey"
	"github.com/tracediff/tracediff/order"
)

// Bounds of a file. A model of 100 layers has some 7,000 entries a pass: more lines than that are no list of what is known.
const (
	MaxBytes = 8 << 20
	maxLines = 1 << 13
	maxText  = 4096 // of a name, a reason or a cause
	// A relative error of 1 is that of zeros, and 2 of the wrong sign. What is a million times as large is no known divergence but whatever
	// comes.
	maxSize = 1e6
)

// file is the TOML of a baseline; see [Parse].
type file struct {
	Accepted []accepted `toml:"accepted"`
}

// accepted is one divergence of a baseline. A nil pointer is an absent key, unlike a zero.
type accepted struct {
	Entry    string             `toml:"entry"`
	Run      string             `toml:"prompt"`
	Class    string             `toml:"class"`
	Seen     string             `toml:"seen"`
	Error    *float64           `toml:"error"`
	Slices   map[string]float64 `toml:"slices"`
	Own      *float64           `toml:"own_inputs"`
	Elements int64              `toml:"elements"`
	Shape    []int              `toml:"shape"`
	DType    string             `toml:"dtype"`
	Cause    string             `toml:"cause"`
	Mistake  string             `toml:"mistake"`
	Reason   string             `toml:"reason"`
	Until    string             `toml:"until"`
}

// Parse reads a baseline, as [Format] writes it:
//
//	[[accepted]]
//	entry      = "layers.3.mlp.down_proj"     # required: the entry as reports name it; no pattern. pass2/NAME is of pass 2
//	prompt     = "hello"                      # the prompt of a gate; left out: every run that the file is given to
//	class      = "VALUE"                      # required: VALUE, SHAPE, NONFINITE or DTYPE
//	seen       = "past"                       # required: facts.seen of the row in a JSON report
//	error      = 0.012                        # relative L2 of the tensor, where it was past its limit
//	slices     = {token = 0.1, channel = 0.3} # of the worst token, channel ..., likewise
//	own_inputs = 0.011                        # relative L2 against the right result on the local side's own inputs
//	elements   = 12                           # that are wrong, where there is no size: NaN, masks, integers
//	shape      = [1, 3, 32]                   # of the local tensor, of class SHAPE
//	dtype      = "float32"                    # likewise, of class DTYPE
//	cause      = "epsilon is 1e-05"           # the name of the mistake, as a sentence
//	mistake    = "number.value(of=epsilon,x=1e-05)" # the same as a key, which decides if it is there
//	reason     = "int8 weights, ported later" # required
//	until      = "2027-01-31"                 # required: the last day on which it holds, in UTC
//
// A size is at most a million; error and slices are inf over a reference of zero, where another size says how large it is.
//
// A missing error key covers no error of that kind. An unknown key is an error that quotes its line.
// The lines come in the order of the file.
func Parse(data []byte) ([]Line, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("a baseline of %d bytes, more than %d", len(data), MaxBytes)
	}
	var f file
	if err := tomlfile.Decode(data, &f); err != nil {
		return nil, err
	}
	if n := len(f.Accepted); n > maxLines {
		return nil, fmt.Errorf("%d sections [[accepted]], more than %d", n, maxLines)
	}
	lines := make([]Line, 0, len(f.Accepted))
	for i, a := range f.Accepted {
		l := Line{
			Shown: Shown{
				Key: a.Entry, Class: gate.Class(a.Class), Seen: a.Seen, Error: orNone(a.Error), Own: orNone(a.Own),
				Elements: a.Elements, Shape: a.Shape, DType: a.DType, Cause: a.Cause, Mistake: a.Mistake,
			},
			Run: a.Run, Reason: strings.TrimSpace(a.Reason), Until: a.Until,
		}
		for axis, size := range a.Slices {
			if l.Slices == nil {
				l.Slices = map[string]measure.Number{}
			}
			l.Slices[axis] = measure.Number(size)
		}
		if err := l.Check(); err != nil {
			return nil, fmt.Errorf("[[accepted]] %d, %.80q: %w", i+1, a.Entry, err)
		}
		lines = append(lines, l)
	}
	return lines, distinct(lines)
}

// distinct reports an entry that is listed twice: which of the two holds is not for the order of the file to say. A line without
// a prompt is of all of them.
func distinct(lines []Line) error {
	runs := map[string][]string{}
	for i, l := range lines {
		for _, run := range runs[l.Key] {
			if run == l.Run || run == "" || l.Run == "" {
				return fmt.Errorf("[[accepted]] %d, %.80q: it is there twice, for the same prompt or once for all", i+1, l.Key)
			}
		}
		runs[l.Key] = append(runs[l.Key], l.Run)
	}
	return nil
}

var (
	classes = []gate.Class{gate.Value, gate.Shape, gate.NonFinite, gate.DType}
	seen    = append([]string{"shape", "nonfinite", "keys", "numbers", "dtype"}, sized...)
)

// Check reports a line that says too little, or what no line may.
func (l *Line) Check() error {
	day, dayErr := time.Parse(Date, l.Until)
	key, _ := tracekey.Read(l.Key)
	switch {
	case l.Key == "":
		return errors.New("no entry")
	case strings.Contains(l.Key, "*"):
		return errors.New("entry: want the name of one entry, not a pattern")
	case key.Name == order.InputIDs:
		return errors.New("entry: token ids are not a result and cannot be accepted")
	case l.Class == gate.Absent:
		return errors.New("class: an entry that is MISSING is for [[allow]] in a file of tolerances")
	case !slices.Contains(classes, l.Class):
		return fmt.Errorf("class: %.40q is not one of VALUE, SHAPE, NONFINITE and DTYPE", l.Class)
	case !slices.Contains(seen, l.Seen):
		return fmt.Errorf("seen: %.40q is not one of %s", l.Seen, strings.Join(seen, ", "))
	case l.Reason == "":
		return errors.New("no reason: say why this divergence is known and acceptable for now")
	case l.Until == "":
		return errors.New(`no until: give the last day on which it holds, such as until = "2027-01-31"`)
	case dayErr != nil || day.Year() < 1970:
		return fmt.Errorf("until: %.40q is not a date such as 2027-01-31", l.Until)
	case l.Elements < 0:
		return fmt.Errorf("elements is %d, want 0 or more", l.Elements)
	}
	for name, text := range map[string]string{"entry": l.Key, "prompt": l.Run, "dtype": l.DType, "cause": l.Cause, "mistake": l.Mistake, "reason": l.Reason} {
		if len(text) > maxText {
			return fmt.Errorf("%s: %d bytes, more than %d", name, len(text), maxText)
		}
	}
	for name, size := range l.sizes() {
		switch x := float64(size); {
		case x < 0 || math.IsNaN(x):
			return fmt.Errorf("%s is %g, want 0 or more", name, x)
		case x > maxSize && !l.bounded(name, x):
			return fmt.Errorf("%s is %g, more than %g: it would accept anything", name, x, float64(maxSize))
		}
	}
	return nil
}

// bounded reports whether a size may be any number because another size bounds the line: the largest element, over a reference of zero; the
// tensor's error, over a part that is zero.
func (l *Line) bounded(name string, x float64) bool {
	_, largest := l.Slices[gate.LargestElement]
	switch name {
	case "slices." + gate.LargestElement:
		return !math.IsInf(x, 0)
	case "error":
		return math.IsInf(x, 1) && largest
	case "own_inputs":
		return false
	}
	return math.IsInf(x, 1) && (largest || float64(l.Error) <= maxSize)
}

// sizes are the errors that are recorded, by the names of the file.
func (l *Line) sizes() map[string]measure.Number {
	all := map[string]measure.Number{}
	for axis, size := range l.Slices {
		all["slices."+axis] = size
	}
	for name, size := range map[string]measure.Number{"error": l.Error, "own_inputs": l.Own} {
		if !math.IsNaN(float64(size)) {
			all[name] = size
		}
	}
	return all
}

func orNone(v *float64) measure.Number {
	if v == nil {
		return measure.Nan
	}
	return measure.Number(*v)
}

// header begins a file that is written.
const header = `# Known divergences, for tracediff compare --baseline and tracediff gate --baseline. Written by tracediff accept, which keeps the
# lines but not the comments. docs/verdict.md explains the keys.
`

// Format writes lines as [Parse] reads them, with six digits of each error.
func Format(lines []Line) []byte {
	var b bytes.Buffer
	b.WriteString(header)
	for i := range lines {
		lines[i].write(&b)
	}
	return b.Bytes()
}

func (l *Line) write(b *bytes.Buffer) {
	text := func(key, value string) {
		if value != "" {
			fmt.Fprintf(b, "%s = %s\n", key, tomlfile.Quote(value))
		}
	}
	size := func(key string, value measure.Number) {
		if !math.IsNaN(float64(value)) {
			fmt.Fprintf(b, "%s = %s\n", key, number(value))
		}
	}
	b.WriteString("\n[[accepted]]\n")
	text("entry", l.Key)
	text("prompt", l.Run)
	text("class", string(l.Class))
	text("seen", l.Seen)
	size("error", l.Error)
	if len(l.Slices) > 0 {
		var parts []string
		for _, axis := range slices.Sorted(maps.Keys(l.Slices)) {
			if x := l.Slices[axis]; !math.IsNaN(float64(x)) {
				parts = append(parts, tomlfile.Quote(axis)+" = "+number(x))
			}
		}
		fmt.Fprintf(b, "slices = {%s}\n", strings.Join(parts, ", "))
	}
	size("own_inputs", l.Own)
	if l.Elements > 0 {
		fmt.Fprintf(b, "elements = %d\n", l.Elements)
	}
	if l.Shape != nil {
		sizes := make([]string, len(l.Shape))
		for i, n := range l.Shape {
			sizes[i] = strconv.Itoa(n)
		}
		fmt.Fprintf(b, "shape = [%s]\n", strings.Join(sizes, ", "))
	}
	text("dtype", l.DType)
	text("cause", l.Cause)
	text("mistake", l.Mistake)
	text("reason", l.Reason)
	text("until", l.Until)
}

// number is a number of TOML.
func number(x measure.Number) string {
	if math.IsInf(float64(x), 1) {
		return "inf"
	}
	text := strconv.FormatFloat(float64(x), 'g', 6, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// Merge adds lines to old lines. A line of the same entry and prompt replaces the old line; the rest are appended. It returns the number of
// replaced lines. Two added lines of one entry are an error.
func Merge(old, added []Line) (lines []Line, replaced int, err error) {
	lines = slices.Clone(old)
	for _, l := range added {
		at := slices.IndexFunc(lines, func(o Line) bool { return o.Key == l.Key && o.Run == l.Run })
		if at < 0 {
			lines = append(lines, l)
			continue
		}
		lines[at] = l
		replaced++
	}
	return lines, replaced, cmp.Or(distinct(lines), tooMany(lines))
}

func tooMany(lines []Line) error {
	if n := len(lines); n > maxLines {
		return fmt.Errorf("%d lines, more than %d: accept less, or fix what they have in common", n, maxLines)
	}
	return nil
}
