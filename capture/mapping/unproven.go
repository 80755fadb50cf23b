package mapping

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
)

// absent lists the names whose line matches no tensor, unless another line or the dump gives the name.
func (a *application) absent() map[string]string {
	all := map[string]string{}
	for _, r := range a.unused {
		for _, name := range a.named(r) {
			if !slices.ContainsFunc(a.out, func(s capture.Source) bool { return s.Name == name }) {
				all[name] = a.m.at(r)
			}
		}
	}
	return all
}

// named are the names of the order that a line may give.
func (a *application) named(r *rule) (names []string) {
	if a.list == nil {
		return nil
	}
	for _, t := range r.to {
		parts := hole.Split(t.text, -1)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		like := regexp.MustCompile("^" + strings.Join(parts, "[0-9]+") + "$")
		for i := range a.list.Entries {
			if name := a.list.Entries[i].Name; like.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// unproven lists names whose line has by = "guess" or "name".
func (a *application) unproven() map[string]string {
	all := map[string]string{}
	for _, g := range a.order {
		if g.rule.by == "" {
			continue
		}
		what := "is a guess"
		if g.rule.by == ByName {
			what = "rests on its name only"
		}
		for _, to := range g.targets {
			all[to.name] = fmt.Sprintf("%s %s", a.m.at(g.rule), what)
		}
	}
	return all
}
