package capture

import "slices"

// Called is the trace with the later firings of a name called as an order has them: a recorded program has an entry for each call of a module, and that
// of the second is called "x#1", which is the key of the firing with that number. known reports whether the order has a name. A trace in which
// nothing is called so is returned as it is; another stays open as long as the new one is used, and is closed with it.
func (t *Trace) Called(known func(name string) bool) *Trace {
	own := func(r Record) (string, bool) {
		if r.Firing == 0 {
			return "", false
		}
		name := Key(0, r.Name, r.Firing)
		return name, known(name)
	}
	if !slices.ContainsFunc(t.records, func(r Record) bool { _, ok := own(r); return ok }) {
		return t
	}
	c := &Trace{
		path: t.path, file: t.file, closer: t, size: t.size, manifest: t.manifest, sequence: t.sequence,
		records: slices.Clone(t.records), index: make(map[firing]int, len(t.records)), notes: t.notes, unread: t.unread, lacks: t.lacks,
	}
	for i, r := range c.records {
		if name, ok := own(r); ok {
			c.records[i].Name, c.records[i].Firing = name, 0
		}
		c.index[firing{c.records[i].Pass, c.records[i].Name, c.records[i].Firing}] = i
	}
	return c
}
