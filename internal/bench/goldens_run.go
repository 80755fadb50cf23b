package main

import (
	"cmp"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"slices"
)

const (
	sampleSeed = "goldens 1"
	sampleOf   = 6 // the part of the time of all runs that the sample takes
)

// drawn are the runs of the sample, with all their levels, in an order given by the seed: first each run with a class of edits or a status
// that no earlier run has, then any runs, up to a sixth of the goldens' time: three minutes of eighteen.
func (g goldens) drawn() map[string]bool {
	var names []string
	took, of, all := map[string]int{}, map[string][]line{}, 0
	for _, l := range g {
		if of[l.Run] = append(of[l.Run], l); l.Role == "" {
			if len(of[l.Run]) == 1 {
				names = append(names, l.Run)
			}
			took[l.Run] += l.took()
			all += l.took()
		}
	}
	order := map[string]uint64{}
	for _, name := range names {
		hash := fnv.New64a()
		_, _ = io.WriteString(hash, sampleSeed+" "+name)
		order[name] = hash.Sum64()
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(order[a], order[b]) })
	out, seen, sum := map[string]bool{}, map[string]bool{}, 0
	take := func(name string) {
		if !out[name] {
			out[name] = true
			sum += took[name]
		}
	}
	for _, name := range names {
		for _, l := range of[name] {
			for _, have := range []string{"class " + l.Class, "status " + l.Status} {
				if !seen[have] {
					seen[have] = true
					take(name)
				}
			}
		}
	}
	for _, name := range names {
		if sum*sampleOf >= all {
			break
		}
		take(name)
	}
	return out
}

// compareGoldens compares the findings of the goldens' runs, or of a sample, with the goldens. With write the goldens are written anew, and
// names in new words are added to the list of read names.
func (s source) compareGoldens(w io.Writer, sample, write bool) error {
	m, err := readRuns(s.dir)
	if err != nil {
		return err
	}
	read, err := parseReadings(readNames)
	if err != nil {
		return err
	}
	was, err := readGoldens(goldensPath)
	first := write && errors.Is(err, fs.ErrNotExist)
	if err != nil && !first {
		return err
	}
	name := "goldens.json"
	if m.Runs = ofGoldens(m.Runs); sample {
		name = "sample.json"
		runs := was.drawn()
		was = was.of(runs)
		m.Runs = slices.DeleteFunc(m.Runs, func(r run) bool { return !runs[r.Name] })
	}
	found, err := s.finds(name, m)
	if err != nil {
		return err
	}
	judged(found.Results, read)
	traces, err := digests(s.dir, found.Results)
	if err != nil {
		return err
	}
	is := goldens(linesOf(found.Results, traces))
	var d *difference
	if !first {
		d = differenceOf(was, is)
		d.print(w)
	}
	if !write {
		return d.err()
	}
	var carried []reading
	if d != nil {
		is, carried = d.lines, d.carried
	}
	if err := addNames(found.Results, carried); err != nil {
		return err
	}
	data, err := is.encode()
	if err != nil {
		return err
	}
	return os.WriteFile(goldensPath, data, 0o666)
}
