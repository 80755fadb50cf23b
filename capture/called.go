package capture

import "slices"

// Called is the trace with the later firings of a name under the names of an order. A recorded program has an entry for each call of a module; the
// entry of the second call has the name "x#1", which is the key of firing 1. known reports whether the order has a name. If no later firing has a
// name in the order, Called returns t. Otherwise t stays open while the new trace is used, and is closed with the new trace.
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
