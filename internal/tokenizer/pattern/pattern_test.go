package pattern_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/tokenizer/pattern"
)

// A golden is an expression with the places of its matches in some texts by Oniguruma, as fixtures/tokenizer/expressions.py wrote them: nil
// where it gave up.
type golden struct {
	Pattern string
	Texts   []string
	Places  [][]int
}

func goldens(t testing.TB) (all []golden) {
	t.Helper()
	f, err := os.Open("testdata/expressions.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bufio.NewReader(zip)); ; {
		var g golden
		if err := dec.Decode(&g); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
}

// find returns the places of the matches, flat.
func find(p *pattern.Pattern, text string) ([]int, error) {
	places, err := p.Find(text, pattern.NewBudget(len(text)))
	var flat []int
	for _, place := range places {
		flat = append(flat, place[0], place[1])
	}
	return flat, err
}

func TestFindEqualsOniguruma(t *testing.T) {
	read, compared := 0, 0
	for _, g := range goldens(t) {
		p, err := pattern.Compile(g.Pattern)
		if err != nil {
			continue
		}
		read++
		if g.Places == nil {
			t.Errorf("%q is read, and Oniguruma refuses it", g.Pattern)
			continue
		}
		for i, text := range g.Texts {
			got, err := find(p, text)
			if err != nil || g.Places[i] == nil {
				continue // one of the two gives up
			}
			if compared++; !slices.Equal(got, g.Places[i]) {
				t.Errorf("%q on %q: %v, want %v", g.Pattern, text, got, g.Places[i])
			}
		}
	}
	if read < 100 || compared < 1900 {
		t.Errorf("only %d expressions are read, and %d texts compared", read, compared)
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          []int
	}{
		{`a|ab`, "ab", []int{0, 1}}, // the first alternative, not the longest
		{`\s+(?!\S)|\s+`, "a  b c ", []int{1, 2, 2, 3, 4, 5, 6, 7}},
		{`\s+(?=b)`, "  b", []int{0, 2}},
		{`\p{N}{1,3}`, "1234²", []int{0, 3, 3, 6}},
		{`[^a]?+b`, "bb", []int{0, 2}},
		{`b?+b`, "b", nil}, // what is possessive gives nothing back
		{`(?>a+)ab`, "aab", nil},
		{`a+?`, "aa", []int{0, 1, 1, 2}},
		{`'(?i:[sdmt]|ll)`, "'S'ſ'LL'k", []int{0, 2, 2, 5, 5, 8}},
		{`(?i:k)`, "kK\u212a", []int{0, 1, 1, 2, 2, 5}},
		{`(?i:é)?a`, "a", nil}, // refused
		{`[\]\-é-ü]`, "]-ë", []int{0, 1, 1, 2, 2, 4}},
		{`.`, "\n\r", []int{1, 2}},
		{`(a|b){2}`, "abab", []int{0, 2, 2, 4}},
		{`\x{1F600}|\u00e9|\x41`, "😀éA", []int{0, 4, 4, 6, 6, 7}},
		{`\p{^L}`, "a1", []int{1, 2}},
		{`\p{L}`, "\u1c89\ua7cb", []int{0, 3, 3, 6}}, // of Unicode 16
	} {
		p, err := pattern.Compile(c.pattern)
		if err != nil {
			if c.want != nil {
				t.Errorf("%s: %v", c.pattern, err)
			}
			continue
		}
		if got, err := find(p, c.text); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s on %q: %v, %v, want %v", c.pattern, c.text, got, err, c.want)
		}
	}
}

func TestWhatIsNotReadIsNamed(t *testing.T) {
	for expression, want := range map[string]string{
		``:                              "empty text",
		`a*`:                            "empty text",
		`(?=a)`:                         "empty text",
		`a|`:                            "empty text",
		`(a*)+b`:                        "a quantifier of what matches the empty text",
		`(?!a)*b`:                       "a quantifier of what matches the empty text",
		`(?<=a)b`:                       "(?<=",
		`(?<name>a)`:                    "(?<n",
		`(?x:a)`:                        "(?x:",
		`(?i)a`:                         "(?i)",
		`^a`:                            "'^'",
		`a$`:                            "'$'",
		`\bа`:                           `\b`,
		`\w`:                            `\w`,
		`\1`:                            `\1`,
		`\p{Han}`:                       "Han",
		`\p{Lx}`:                        "Lx",
		`\pL`:                           `\p`,
		`[a&&b]`:                        "'&'",
		`[a[b]]`:                        "'['",
		`[[:alpha:]]`:                   "'['",
		`[]a]`:                          "']'",
		`[b-a]`:                         "a range",
		`[\s-a]`:                        "a range",
		`[a-c-e]`:                       "a range",
		`[a`:                            "unmatched [",
		`(a`:                            "unmatched (",
		`a)`:                            "unmatched )",
		`a**`:                           "after a quantifier",
		`a{2}?b`:                        "after a quantifier",
		`a{2,1}`:                        "{2,1}",
		`a{9999}`:                       "{9999}",
		`a{x}`:                          "{x}",
		`{a`:                            "'{'",
		`+a`:                            "'+'",
		`(?i:ß)`:                        "without regard to case",
		`(?i:ss)`:                       "without regard to case",
		`(?i:[^a])`:                     "without regard to case",
		`(?i:\p{L})`:                    "without regard to case",
		`\xff`:                          `\xFF`,
		`\x{110000}`:                    "110000",
		`\ud800`:                        "d800",
		`\`:                             "at the end",
		strings.Repeat("(", 100):        "deep",
		`((a{999}){999}){999}`:          "steps",
		strings.Repeat("a", 1<<14+1):    "bytes",
		`(?:` + `(a|b){1000}` + `){99}`: "steps",
	} {
		if _, err := pattern.Compile(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want an error that names %s", expression, err, want)
		}
	}
}

// An expression that takes exponential time ends in an error, and soon; a long text alone does not.
func TestBudget(t *testing.T) {
	began := time.Now()
	hostile, err := pattern.Compile(`(a|a)+b`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := find(hostile, strings.Repeat("a", 10_000)); !errors.Is(err, pattern.ErrBudget) {
		t.Errorf("%v, want %v", err, pattern.ErrBudget)
	}
	deep, err := pattern.Compile(`(?:a|b|c|d|e|f|g|h)+z`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := find(deep, strings.Repeat("h", 1<<20)); !errors.Is(err, pattern.ErrBudget) {
		t.Errorf("%v, want %v", err, pattern.ErrBudget)
	}
	words, err := pattern.Compile(`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lo}\p{M}]*[\p{Ll}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lo}\p{M}]+[\p{Ll}\p{Lo}\p{M}]*|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"A", "a ", " ", " \n", "\u0301", "日", "!", "1"} {
		if _, err := find(words, strings.Repeat(part, 100_000)); err != nil {
			t.Errorf("%q: %v", part, err)
		}
	}
	if spent := time.Since(began); spent > time.Minute {
		t.Errorf("%v", spent)
	}
}

// The classes are those of newer tables than Go's: on what Go knows they agree, and every character is of one general category.
func TestClasses(t *testing.T) {
	sets := map[string]*pattern.Pattern{}
	for _, name := range strings.Fields("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn") {
		p, err := pattern.Compile(`\p{` + name + `}`)
		if err != nil {
			t.Fatal(err)
		}
		sets[name] = p
	}
	var every strings.Builder
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) {
			every.WriteRune(r)
		}
	}
	text, total, newer := every.String(), 0, 0
	for name, p := range sets {
		places, err := p.Find(text, pattern.NewBudget(100*len(text)))
		if err != nil {
			t.Fatal(err)
		}
		total += len(places)
		for _, at := range places {
			if r, _ := utf8.DecodeRuneInString(text[at[0]:]); name != "Cn" && !unicode.Is(unicode.Categories[name], r) {
				newer++
			}
		}
	}
	if total != utf8.RuneCountInString(text) {
		t.Errorf("%d of %d characters have a category", total, utf8.RuneCountInString(text))
	}
	if newer > 6000 { // what Unicode 15.1 and 16 have added; with a Go of Unicode 16 a few
		t.Errorf("Go has another category for %d characters", newer)
	}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if pattern.Class("space").Has(r) != unicode.IsSpace(r) {
			t.Errorf("%U: white space", r)
		}
	}
	for _, c := range []struct {
		name string
		r    rune
		want bool
	}{{"word", 'a', true}, {"word", '\u0301', true}, {"word", '-', false}, {"numeric", '²', true}, {"numeric", '一', false}, {"punctuation", '$', true}, {"punctuation", '€', false}} {
		if pattern.Class(c.name).Has(c.r) != c.want {
			t.Errorf("%s: %q", c.name, c.r)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, g := range goldens(f)[:100] {
		f.Add(g.Pattern, g.Texts[0])
	}
	f.Fuzz(func(t *testing.T, expression, text string) {
		p, err := pattern.Compile(expression)
		if err != nil {
			return
		}
		places, err := p.Find(text, pattern.NewBudget(len(text)))
		if err != nil && !errors.Is(err, pattern.ErrBudget) {
			t.Fatal(err)
		}
		done := 0
		for _, place := range places {
			if place[0] < done || place[1] <= place[0] || place[1] > len(text) {
				t.Fatalf("%q on %q: %v", expression, text, places)
			}
			done = place[1]
		}
	})
}
