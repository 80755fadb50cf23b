package recorded

import (
	"fmt"
	"sync"
)

// expand makes the lines of a run.
func (r *reader) expand(run int) error {
	r.first, r.values = r.valuesBefore(run), nil
	for i := range r.runs()[run] {
		if err := r.pass(&r.runs()[run][i], &r.passes[run][i]); err != nil {
			return fmt.Errorf("%spass %d: %w", ofRun(run), i, err)
		}
	}
	return nil
}

// valuesBefore is how many values the runs before one make.
func (r *reader) valuesBefore(run int) int {
	own := make([]int, len(r.templates))
	for i, template := range r.templates {
		for k := range template {
			own[i] += len(template[k].Out)
		}
	}
	n := 0
	for _, passes := range r.runs()[:run] {
		for _, p := range passes {
			for _, call := range p.Calls {
				if at := templateOf(call); at >= 0 && at < len(own) {
					n += own[at]
				}
			}
		}
	}
	return n
}

// pass expands the calls of a pass.
func (r *reader) pass(from *filePass, to *Pass) error {
	names := map[string]bool{}
	to.First = r.first + len(r.values)
	lines := 0
	for _, call := range from.Calls {
		if at := templateOf(call); at >= 0 && at < len(r.templates) {
			lines += len(r.templates[at])
		}
	}
	to.Lines = make([]Line, 0, lines)
	for k, data := range from.Calls {
		var call [3]any
		err := decode(data, &call)
		template, ok := whole(call[0])
		layer, also := whole(call[1])
		holes, list := call[2].([]any)
		if err != nil || !ok || !also || !list || template < 0 || template >= len(r.templates) || layer < -1 || layer > 1<<20 {
			return fmt.Errorf("call %d is %.80s: want a template, a layer and what its holes hold", k, data)
		}
		c := &caller{reader: r, layer: layer, holes: holes, first: r.first + len(r.values)}
		for n := range r.templates[template] {
			l, err := c.line(&r.templates[template][n])
			if err != nil {
				return fmt.Errorf("call %d, line %d of template %d: %w", k, n, template, err)
			}
			if l.Name != nil {
				if names[l.Name.Name] {
					return fmt.Errorf("call %d, line %d of template %d: a second %q", k, n, template, l.Name.Name)
				}
				names[l.Name.Name] = true
			}
			to.Lines = append(to.Lines, l)
		}
	}
	return nil
}

// others holds the runs of other lengths. The runs are expanded once, when a caller asks for another length.
type others struct {
	reader *reader
	once   sync.Once
	runs   [][]Pass
	err    error
}

// others returns the runs after the first run; nil if the file has only one run.
func (r *reader) others() *others {
	if len(r.Runs) == 0 {
		return nil
	}
	return &others{reader: r}
}

// all returns the passes of each run of another length; nil for a program of a single run.
func (o *others) all() ([][]Pass, error) {
	if o == nil {
		return nil, nil
	}
	o.once.Do(func() {
		for run := range o.reader.runs()[1:] {
			if o.err = o.reader.expand(run + 1); o.err != nil {
				return
			}
		}
		o.runs = o.reader.passes[1:]
		o.reader = nil // its text is not kept
	})
	return o.runs, o.err
}
