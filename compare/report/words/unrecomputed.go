package words

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/tracekey"
	"github.com/tracediff/tracediff/order"
)

// maxRoles is how many kinds of entries a line of the page names.
const maxRoles = 8

// varying matches the parts of a reason that differ from entry to entry: names of tensors, and numbers.
var varying = regexp.MustCompile(`\b(` + tracekey.PassPattern + `)?[A-Za-z_]\w*(\.\w+)+|\b\d+(\.\d+)?(e[-+]\d+)?\b`)

// common is a reason without names of tensors and numbers. Reasons with equal common parts share a line.
func common(why string) string { return varying.ReplaceAllString(why, "*") }

// notRecomputed says which entries could not be recomputed, how many of each kind, and why: a line a reason.
func notRecomputed(doc *Document, s *compare.Isolation) {
	var lines []compare.Reason
	for _, r := range s.Reasons {
		if r.Outcome != "" || r.Form != "" {
			continue
		}
		at := slices.IndexFunc(lines, func(l compare.Reason) bool { return common(l.Why) == common(r.Why) })
		if at < 0 {
			r.Roles = slices.Clone(r.Roles)
			lines = append(lines, r)
			continue
		}
		lines[at].Rows += r.Rows
		for _, c := range r.Roles {
			lines[at].Roles = compare.CountRole(lines[at].Roles, c.Role, c.Rows)
		}
	}
	for i, l := range lines {
		if i == maxShort {
			doc.sub(verboseHas, count(len(lines)-i, "reason", "reasons"))
			return
		}
		why := l.Why
		if l.Rows > 1 && common(why) != why { // it is that of the first
			why = "the first, " + l.First + ": " + why
		}
		doc.sub("not recomputed: %s: %s", kinds(l), why)
	}
}

// kinds names the entries of a reason by what they are in their layer, with counts. A report of an older version has no kinds.
func kinds(r compare.Reason) string {
	if len(r.Roles) == 0 {
		return count(r.Rows, "entry", "entries")
	}
	roles := slices.Clone(r.Roles)
	slices.SortStableFunc(roles, func(a, b compare.RoleCount) int { return b.Rows - a.Rows })
	var parts []string
	left := 0
	for i, c := range roles {
		if i >= maxRoles && len(roles) > maxRoles+1 {
			left += c.Rows
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", c.Rows, order.NameOf(c.Role).Module()))
	}
	if left > 0 {
		parts = append(parts, fmt.Sprintf("%d of other kinds", left))
	}
	return strings.Join(parts, ", ")
}

// worstSlices names the token, head and channel with the largest difference from the reference, each with its relative L2.
func worstSlices(doc *Document, row *compare.Row) {
	if row.Metrics == nil {
		return
	}
	var parts []string
	for _, a := range row.Metrics.Axes {
		if a.Size > 1 && a.RelL2 > 0 {
			parts = append(parts, fmt.Sprintf("%s %d (%s)", a.Axis, a.Worst, brief(float64(a.RelL2))))
		}
	}
	if parts != nil {
		doc.field("worst", "relative L2 by part: %s", strings.Join(parts, ", "))
	}
}
