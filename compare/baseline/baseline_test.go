package baseline_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare/baseline"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

const whole = `[[accepted]]
entry = "layers.3.mlp.down_proj"
class = "VALUE"
seen = "past"
error = 0.012
slices = {token = 0.1, "axis 2" = 0.3}
own_inputs = 0.011
cause = "epsilon is 1e-05"
reason = " int8 weights "
until = "2027-01-31"
`

func TestParse(t *testing.T) {
	lines, err := baseline.Parse([]byte(whole))
	if err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	l := lines[0]
	if l.Key != "layers.3.mlp.down_proj" || l.Reason != "int8 weights" || l.Slices["axis 2"] != 0.3 || l.Own != 0.011 {
		t.Errorf("%+v", l)
	}
	for today, expired := range map[string]bool{"2026-12-31": false, "2027-01-31": false, "2027-02-01": true, "2028-01-01": true} {
		if l.Expired(today) != expired {
			t.Errorf("on %s it is expired: %t", today, !expired)
		}
	}
}

// What a line may not say is an error that names the line.
func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ why, from, to, want string }{
		{"a pattern accepts what nobody has looked at", "layers.3.mlp.down_proj", "layers.*", "not a pattern"},
		{"token ids", "layers.3.mlp.down_proj", "input_ids", "token ids"},
		{"token ids of a pass", "layers.3.mlp.down_proj", "pass3/input_ids", "token ids"},
		{"no entry", `entry = "layers.3.mlp.down_proj"`, "", "no entry"},
		{"no class", `class = "VALUE"`, "", `class: "" is not one of`},
		{"a class that is none", "VALUE", "value", `class: "value" is not one of`},
		{"what is missing is not a divergence of an entry", "VALUE", "MISSING", "[[allow]]"},
		{"nothing seen", `seen = "past"`, "", `seen: "" is not one of`},
		{"an error that nothing exceeds", "0.011", "inf", "own_inputs is +Inf, more than 1e+06: it would accept anything"},
		{"and nothing that is measured", "0.011", "1e300", "own_inputs is 1e+300, more than 1e+06"},
		{"of the tensor, over a reference that is not zero", "0.012", "inf", "error is +Inf"},
		{"of a token, beside one of the tensor that is none", "error = 0.012\nslices = {token = 0.1", "slices = {token = inf", "slices.token is +Inf"},
		{"no reason", "int8 weights", "", "no reason"},
		{"no last day", `until = "2027-01-31"`, "", "no until"},
		{"never is no day", "2027-01-31", "never", "is not a date"},
		{"February has no 31st", "2027-01-31", "2027-02-31", "is not a date"},
		{"a year of three digits sorts before all others", "2027-01-31", "999-01-31", "is not a date"},
		{"the year 0", "2027-01-31", "0000-01-31", "is not a date"},
		{"a time", "2027-01-31", "2027-01-31T10:00:00Z", "is not a date"},
		{"a negative error", "error = 0.012", "error = -1.0", "error is -1, want 0 or more"},
		{"an error that is not a number", "token = 0.1", "token = nan", "slices.token is NaN"},
		{"a negative count", "error = 0.012", "elements = -1", "elements is -1"},
		{"an error in words", "error = 0.012", `error = "small"`, `"accepted.error" is a string, want a number`},
		{"a key that was misspelt", "until =", "untill =", `line 11, "untill = \"2027-01-31\"": unknown key "accepted.untill"`},
		{"a section that is none", "[[accepted]]", "[[accept]]", `unknown key "accept`},
		{"a reason without an end", "int8 weights", strings.Repeat("x", 5000), "reason: 5000 bytes"},
		{"TOML that is none", "[[accepted]]", "[[accepted", "line 1"},
		{"an error larger than any number", "error = 0.012", "error = 1e999", "line 5"},
	} {
		text := strings.Replace(whole, test.from, test.to, 1)
		if text == whole {
			t.Fatalf("%s: nothing was changed", test.why)
		}
		if test.from == "until =" {
			text = "\n" + text
		}
		if _, err := baseline.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.why, err, test.want)
		}
	}
	named := strings.Replace(whole, "class", "prompt = \"a\"\nclass", 1)
	for why, text := range map[string]string{
		"the same entry twice":             whole + whole,
		"for one prompt and for all":       whole + named,
		"for all and for one prompt":       named + whole,
		"the same entry and prompt, twice": named + named,
	} {
		if _, err := baseline.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "it is there twice") {
			t.Errorf("%s: %v", why, err)
		}
	}
	if _, err := baseline.Parse([]byte(named + strings.Replace(named, `"a"`, `"b"`, 1))); err != nil {
		t.Errorf("of two prompts: %v", err)
	}
	if _, err := baseline.Parse(make([]byte, baseline.MaxBytes+1)); err == nil {
		t.Error("a file without an end was read")
	}
}

// accepted is what was recorded in the tests below.
func accepted() baseline.Line {
	return baseline.Line{Shown: baseline.Shown{
		Key: "x", Class: gate.Value, Seen: "past", Error: 0.1, Own: measure.Nan, Slices: map[string]measure.Number{"token": 0.2},
	}, Reason: "known", Until: "2027-01-31"}
}

// A line covers what it has recorded, what is smaller, and what is a little larger; nothing else.
func TestUncovered(t *testing.T) {
	for _, test := range []struct {
		why    string
		line   func(*baseline.Line)
		now    func(*baseline.Shown)
		want   string // empty: it is covered
		covers bool
		aside  string // what is said of a cause that was not compared
	}{
		{why: "the same", covers: true},
		{why: "smaller", now: func(s *baseline.Shown) { s.Error = 0.01 }, covers: true},
		{why: "a little larger", now: func(s *baseline.Shown) { s.Error = 0.149 }, covers: true},
		{why: "half as large again", now: func(s *baseline.Shown) { s.Error = 0.151 }, want: "more than 1.5 times the 0.1"},
		{why: "infinite", now: func(s *baseline.Shown) { s.Error = measure.Number(math.Inf(1)) }, want: "the error is +Inf"},
		{why: "within its limit now, wrong by itself all the same", now: func(s *baseline.Shown) { s.Seen = "within" }, covers: true},
		{why: "one token is wholly wrong", now: func(s *baseline.Shown) { s.Slices = map[string]measure.Number{"token": 1} }, want: "of the worst token is 1"},
		{why: "an axis that was not recorded", now: func(s *baseline.Shown) { s.Slices = map[string]measure.Number{"head": 0.01} }, want: "none was accepted"},
		{why: "wrong by itself, which it was not", now: func(s *baseline.Shown) { s.Own = 0.01 }, want: "on its own inputs is 0.01, and none was accepted"},
		{
			why: "worse by itself", line: func(l *baseline.Line) { l.Own = 0.01 }, now: func(s *baseline.Shown) { s.Own = 0.02 },
			want: "on its own inputs is 0.02",
		},
		{why: "not certified this time", line: func(l *baseline.Line) { l.Own = 0.01 }, covers: true},
		{why: "no error is recorded", line: func(l *baseline.Line) { l.Error = measure.Nan }, want: "none was accepted"},
		{why: "nothing was measured", now: func(s *baseline.Shown) { s.Error, s.Slices = measure.Nan, nil }, want: "was not measured"},
		{why: "only a token is over its limit this time", now: func(s *baseline.Shown) { s.Error = measure.Nan }, covers: true},
		{why: "another class", now: func(s *baseline.Shown) { s.Class = gate.NonFinite }, want: "accepted as VALUE and is now NONFINITE"},
		{why: "other keys are masked", now: func(s *baseline.Shown) { s.Seen = "keys" }, want: "in another way"},
		{
			why: "more keys are masked", line: func(l *baseline.Line) { l.Seen, l.Elements = "keys", 4 },
			now: func(s *baseline.Shown) { s.Seen, s.Elements = "keys", 7 }, want: "7 elements are wrong, and 4 were accepted",
		},
		{
			why: "as many", line: func(l *baseline.Line) { l.Seen, l.Elements = "keys", 4 },
			now: func(s *baseline.Shown) { s.Seen, s.Elements = "keys", 6 }, covers: true,
		},
		{why: "another shape", line: func(l *baseline.Line) { l.Shape = []int{1, 2} }, now: func(s *baseline.Shown) { s.Shape = []int{2, 1} }, want: "shape [1 2] and has [2 1]"},
		{why: "another dtype", line: func(l *baseline.Line) { l.DType = "float16" }, now: func(s *baseline.Shown) { s.DType = "float32" }, want: "float16 and is now float32"},
		{why: "another cause", line: func(l *baseline.Line) { l.Cause = "a" }, now: func(s *baseline.Shown) { s.Cause = "b" }, want: "the cause changed"},
		{
			why: "the same mistake in other words", line: func(l *baseline.Line) { l.Cause, l.Mistake = "a", "k(x=1)" },
			now: func(s *baseline.Shown) { s.Cause, s.Mistake = "b", "k(x=1)" }, covers: true,
		},
		{
			why: "another mistake in the same words", line: func(l *baseline.Line) { l.Cause, l.Mistake = "a", "k(x=1)" },
			now: func(s *baseline.Shown) { s.Cause, s.Mistake = "a", "k(x=2)" }, want: "the cause changed",
		},
		{why: "a file without keys", line: func(l *baseline.Line) { l.Cause = "a" }, now: func(s *baseline.Shown) { s.Cause, s.Mistake = "a", "k(x=1)" }, covers: true},
		{
			why: "other words or another cause, in a file without keys", line: func(l *baseline.Line) { l.Cause = "a" },
			now: func(s *baseline.Shown) { s.Cause, s.Mistake = "b", "k(x=1)" }, covers: true, aside: `accepted as the sentence "a"`,
		},
		{
			why: "another relation, in a file with keys", line: func(l *baseline.Line) { l.Cause, l.Mistake = "a", "k" },
			now: func(s *baseline.Shown) { s.Cause = "b" }, want: "the cause changed",
		},
		{why: "a key without a sentence", line: func(l *baseline.Line) { l.Mistake = "k" }, now: func(s *baseline.Shown) { s.Cause, s.Mistake = "b", "k" }, covers: true},
		{why: "a cause that nobody knew of", now: func(s *baseline.Shown) { s.Cause = "b" }, want: "a cause now"},
		{why: "the cause has no name this time", line: func(l *baseline.Line) { l.Cause = "a" }, covers: true},
	} {
		l := accepted()
		now := accepted().Shown
		if test.line != nil {
			test.line(&l)
		}
		if test.now != nil {
			test.now(&now)
		}
		got := l.Uncovered(&now)
		if test.covers != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
		if aside := l.SetAside(&now); (test.aside == "") != (aside == "") || !strings.Contains(aside, test.aside) {
			t.Errorf("%s: set aside is %q, want %q", test.why, aside, test.aside)
		}
	}
}

// What is written is read back as it was, whatever stands in it.
func TestFormatIsRead(t *testing.T) {
	text := rapid.StringN(1, 40, 200).Filter(func(s string) bool { return strings.TrimSpace(s) == s })
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Float64Range(0, 10), rapid.Just(math.NaN()))
		l := baseline.Line{
			Shown: baseline.Shown{
				Key: rapid.StringMatching(`[a-z.0-9]{1,20}`).Draw(t, "key"), Class: gate.Value, Seen: "past", Error: measure.Number(size.Draw(t, "error")),
				Own: measure.Number(size.Draw(t, "own")), Elements: rapid.Int64Range(0, 1<<40).Draw(t, "elements"), Cause: text.Draw(t, "cause"), Mistake: text.Draw(t, "mistake"),
				Slices: map[string]measure.Number{text.Draw(t, "axis"): 0.25},
			},
			Run: rapid.SampledFrom([]string{"", "hello"}).Draw(t, "run"), Reason: text.Draw(t, "reason"), Until: "2027-01-31",
		}
		if l.Key == "input_ids" {
			return
		}
		data := baseline.Format([]baseline.Line{l})
		got, err := baseline.Parse(data)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v\n%s", err, data)
		}
		if why := got[0].Uncovered(&l.Shown); why != "" && why != "its size was not measured" || got[0].Reason != l.Reason || got[0].Cause != l.Cause || got[0].Mistake != l.Mistake || got[0].Run != l.Run {
			t.Fatalf("%q: %+v is not %+v\n%s", why, got[0], l, data)
		}
		if again := baseline.Format(got); string(again) != string(data) {
			t.Fatalf("written again it is\n%s\nand was\n%s", again, data)
		}
	})
}

// No file makes the reader fail in any other way than by an error.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("[[accepted]]\nslices = {a = 1.0}\nshape = [9223372036854775807]\n"))
	f.Add([]byte("accepted = [{entry = \"\x00\"}]"))
	f.Add([]byte("[accepted]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines, err := baseline.Parse(data)
		if err != nil {
			return
		}
		for i := range lines {
			if err := lines[i].Check(); err != nil {
				t.Errorf("it was read and is none: %v", err)
			}
		}
		if _, err := baseline.Parse(baseline.Format(lines)); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}

func TestMerge(t *testing.T) {
	a, b := accepted(), accepted()
	b.Key = "y"
	worse := accepted()
	worse.Error, worse.Reason = 0.2, "grown"
	lines, replaced, err := baseline.Merge([]baseline.Line{a, b}, []baseline.Line{worse})
	if err != nil || replaced != 1 || len(lines) != 2 || lines[0].Reason != "grown" || lines[1].Key != "y" {
		t.Errorf("%+v, %d, %v", lines, replaced, err)
	}
	other := accepted()
	other.Run = "hello"
	if _, _, err := baseline.Merge([]baseline.Line{a}, []baseline.Line{other}); err == nil {
		t.Error("an entry is there for all prompts and for one")
	}
}
