package main

import "testing"

func TestColoured(t *testing.T) {
	for _, c := range []struct {
		when          string
		terminal      bool
		noColor, term string
		want          bool
	}{
		{"auto", true, "", "xterm", true},
		{"auto", false, "", "xterm", false},
		{"auto", true, "1", "xterm", false},
		{"auto", true, "", "dumb", false},
		{"always", false, "1", "dumb", true},
		{"never", true, "", "xterm", false},
	} {
		env := func(name string) string { return map[string]string{"NO_COLOR": c.noColor, "TERM": c.term}[name] }
		if got, err := coloured(c.when, c.terminal, env); err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	if _, err := coloured("sometimes", true, func(string) string { return "" }); err == nil {
		t.Error("no error for sometimes")
	}
}
