package mapping

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/layout"
)

// rule is a line of a map.
type rule struct {
	line int // in the file; 0 if unknown
	from *pattern
	to   []target // empty: the tensor is left out

	layout *layout.Layout
	split  *split // one tensor becomes several
	joining
	ring   string      // the axis of keys, for a tensor whose keys stand in a ring of slots
	pass   *expression // nil: the pass of the tensor does not change
	last   bool        // the tensor has only the row of the pass's last token
	unless *target     // if the pass has a tensor of this name, the line leaves its own tensor out; nil for no name
	folded bool        // of a weight: the file has 1+w where the checkpoint has w
	by     string      // the ground of a line that no value proves: ByName or ByGuess; "" for a line that is right
}

// joining makes one tensor of several.
type joining struct {
	join   string   // the name of an axis, JoinSum or JoinSame; "" for no joining
	copies int      // with the name of an axis: the number of consecutive ranks with the same part; 0 if each rank has its own part
	over   []string // the captures that differ between the joined tensors
}

// The ground of a line that no value proves.
const (
	ByName  = "name"  // a known name; the values differ from the reference
	ByGuess = "guess" // similar names, the order of the dump, or values that are close
)

// The values of join that are not the name of an axis.
const (
	JoinSum  = "sum"  // partial results are added up
	JoinSame = "same" // all tensors have the same elements, and the first tensor is used
)

// split cuts an axis into parts, one after the other.
type split struct {
	axis  string
	sizes []*expression
}

// maxText bounds every text of a rule, in bytes, and the number of names for one tensor.
const maxText = 1 << 10

// fields are the keys of a rule that is a table. Weights may also have folded.
var fields = []string{"to", "axes", "split", "join", "ring", "pass", "rows", "unless", "by"}

const folded = "folded"

// newRule reads a rule from TOML: a name, or a table.
func newRule(pattern string, value any) (*rule, error) {
	r := &rule{}
	var err error
	if len(pattern) > maxText {
		return nil, fmt.Errorf("a pattern of %d bytes: %d are allowed", len(pattern), maxText)
	}
	if r.from, err = newPattern(pattern); err != nil {
		return nil, err
	}
	if to, ok := value.(string); ok {
		value = map[string]any{"to": to}
	}
	table, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("want a name, or a table such as { to = \"...\", axes = \"t c -> 1 t c\" }; a pattern with dots stands in quotes")
	}
	texts := map[string]string{}
	for key, v := range table {
		if !slices.Contains(fields, key) && key != folded {
			return nil, fmt.Errorf("%q is unknown: want %s; a pattern with dots stands in quotes", key, strings.Join(fields, ", "))
		}
		if key == "to" {
			continue
		}
		if texts[key], ok = v.(string); !ok || strings.TrimSpace(texts[key]) == "" {
			return nil, fmt.Errorf("%s: want a text in quotes", key)
		}
		if len(texts[key]) > maxText {
			return nil, fmt.Errorf("%s: a text of %d bytes: %d are allowed", key, len(texts[key]), maxText)
		}
	}
	if err := r.targets(table["to"]); err != nil {
		return nil, err
	}
	if err := r.transforms(texts); err != nil {
		return nil, err
	}
	return r, r.whole()
}

func (r *rule) targets(value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, v := range list {
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("to: want a name, or a list of names")
		}
		if len(text) > maxText || len(list) > maxText {
			return fmt.Errorf("to: %d names, one of %d bytes: %d are allowed of each", len(list), len(text), maxText)
		}
		t, err := newTarget(text, r.from)
		if err != nil {
			return err
		}
		r.to = append(r.to, t)
	}
	return nil
}

func (r *rule) transforms(texts map[string]string) error {
	var err error
	if text, ok := texts["split"]; ok {
		if r.split, err = newSplit(text); err != nil {
			return err
		}
	}
	if text, ok := texts["axes"]; ok {
		dropped := ""
		if r.split != nil {
			dropped = r.split.axis
		}
		if r.layout, err = layout.New(text, dropped); err != nil {
			return err
		}
	}
	if text, ok := texts["pass"]; ok {
		if r.pass, err = newExpression(text); err != nil {
			return fmt.Errorf("pass: %w", err)
		}
	}
	if text, ok := texts["unless"]; ok {
		t, err := newTarget(text, r.from)
		if err != nil {
			return fmt.Errorf("unless: %w", err)
		}
		if text == r.from.text {
			return errors.New("unless is the pattern of its own line, so the line never applies: want the name of another tensor")
		}
		r.unless = &t
	}
	if rows, ok := texts["rows"]; ok && rows != "last" {
		return fmt.Errorf("rows is %q, want last", rows)
	}
	if r.by = texts["by"]; r.by != "" && r.by != ByName && r.by != ByGuess {
		return fmt.Errorf("by is %q, want name or guess, or nothing for a line that is right", r.by)
	}
	if text, ok := texts[folded]; ok && text != "1+w" {
		return fmt.Errorf("%s is %q, want 1+w", folded, text)
	}
	join, copies, several := strings.Cut(texts["join"], "/")
	if several {
		n, err := strconv.Atoi(copies)
		if err != nil || n < 2 || n > maxText || join == JoinSum || join == JoinSame {
			return fmt.Errorf("join is %q, want an axis and how many ranks have each part of it, 2 or more, such as \"h/2\"", texts["join"])
		}
		r.copies = n
	}
	r.join, r.ring, r.last, r.folded = join, texts["ring"], texts["rows"] != "", texts[folded] != ""
	return nil
}

// newSplit reads "c: h*d | k*d | k*d".
func newSplit(text string) (*split, error) {
	name, sizes, ok := strings.Cut(text, ":")
	s := &split{axis: strings.TrimSpace(name)}
	if !ok || !layout.IsName(s.axis) {
		return nil, fmt.Errorf("split is %q, want an axis and the sizes of its parts, such as \"c: h*d | k*d | k*d\"", text)
	}
	for _, size := range strings.Split(sizes, "|") {
		e, err := newExpression(size)
		if err != nil {
			return nil, fmt.Errorf("split: %w", err)
		}
		s.sizes = append(s.sizes, e)
	}
	return s, nil
}

// whole checks that the parts of a rule fit together.
func (r *rule) whole() error {
	if len(r.to) == 0 {
		if r.words() != "" {
			return fmt.Errorf("to is an empty list, which leaves a tensor out: the line can have no other key")
		}
		return nil
	}
	parts := 1
	if r.split != nil {
		parts = len(r.split.sizes)
	}
	named := func(what, name string) error {
		if r.layout == nil || !slices.Contains(r.layout.Left(), name) {
			return fmt.Errorf("%s: no axis is called %s: axes = \"... -> ...\" gives names", what, name)
		}
		return nil
	}
	if len(r.to) != parts {
		return fmt.Errorf("%d names for %d parts: split says how a tensor becomes several", len(r.to), parts)
	}
	if r.split != nil {
		if err := named("split", r.split.axis); err != nil {
			return err
		}
	}
	if r.ring != "" {
		if err := named("ring", r.ring); err != nil {
			return err
		}
	}
	if r.join != "" && r.join != JoinSum && r.join != JoinSame {
		if err := named("join", r.join); err != nil {
			return err
		}
	}
	return r.findJoined()
}

// findJoined finds the captures that differ between joined tensors: the captures in no target.
func (r *rule) findJoined() error {
	used := map[string]bool{}
	for _, t := range r.to {
		for _, n := range t.uses {
			used[n] = true
		}
	}
	if r.pass != nil {
		for _, n := range r.pass.names() {
			if !slices.Contains(r.from.names, n) || !isNumber(n) {
				return fmt.Errorf("pass: the pattern has no number {%s}", n)
			}
			used[n] = true
		}
	}
	for _, n := range r.from.names {
		if !used[n] && !slices.Contains(r.over, n) {
			r.over = append(r.over, n)
		}
	}
	switch {
	case len(r.over) > 0 && r.join == "":
		return fmt.Errorf("{%s} is in no target: join = \"same\", \"sum\" or an axis says how several tensors become one", r.over[0])
	case len(r.over) == 0 && r.join != "":
		return fmt.Errorf("join = %q, and every capture is in a target: want a capture that is in no target, such as rank{R}, to tell the joined tensors apart", r.join)
	}
	return nil
}

// words lists what a rule does in addition to naming.
func (r *rule) words() string {
	var list []string
	add := func(what, text string) {
		if text != "" {
			list = append(list, what+" "+text)
		}
	}
	if r.layout != nil {
		add("axes", r.layout.Text)
	}
	if r.split != nil {
		var sizes []string
		for _, e := range r.split.sizes {
			sizes = append(sizes, e.text)
		}
		add("split", r.split.axis+": "+strings.Join(sizes, " | "))
	}
	if r.copies > 1 {
		add("join", fmt.Sprintf("%s/%d", r.join, r.copies))
	} else {
		add("join", r.join)
	}
	add("ring", r.ring)
	if r.pass != nil {
		add("pass", r.pass.text)
	}
	if r.last {
		add("rows", "last")
	}
	if r.unless != nil {
		add("unless", r.unless.text)
	}
	if r.folded {
		add(folded, "1+w")
	}
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, "; ") + ")"
}

// names are the targets, for people: * stands for a capture.
func (r *rule) names() string {
	var list []string
	for _, t := range r.to {
		list = append(list, hole.ReplaceAllString(t.text, "*"))
	}
	return strings.Join(list, ", ")
}
