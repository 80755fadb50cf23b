package arithmetic_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order/ordertest"
)

// engines are traces whose forms have arithmetics other than transformers', kernels, or several arithmetics.
var engines = []string{"mlx/gemma-tiny.bfloat16", "mlx/gemma3n-tiny.bfloat16", "keras/gemma2-tiny.bfloat16", "keras/qwen2-tiny.float32"}

// opened is a trace of another engine, with an isolator of it.
func opened(t *testing.T, name string) (*capture.Trace, *compare.Isolator) {
	t.Helper()
	trace, err := capture.Open("../../fixtures/wild/" + name + ".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trace.Close() })
	model, _, _ := strings.Cut(filepath.Base(name), ".")
	ck, list := ordertest.Embedded(t, model)
	dtype, err := isolate.ModelDType(list, trace, trace)
	if err != nil {
		t.Fatal(err)
	}
	i, err := compare.NewIsolator(trace, list, reference.Weights(ck, dtype), isolate.Options{DType: dtype})
	if err != nil {
		t.Fatal(err)
	}
	return trace, i
}

// certificates are those of all entries of a trace by their keys, as JSON, asked for in the order of a seed; 0 for that of the trace.
func certificates(ctx context.Context, t *testing.T, trace *capture.Trace, i *compare.Isolator, seed uint64) (map[string]string, error) {
	t.Helper()
	records := trace.Records()
	at := rand.New(rand.NewPCG(seed, 1)).Perm(len(records))
	all := map[string]string{}
	for k := range records {
		r := records[k]
		if seed > 0 {
			r = records[at[k]]
		}
		if e, ok := i.List().Lookup(r.Name); !ok || i.Recomputed(e.Name) || r.Firing > 0 {
			continue
		}
		c, err := i.Certify(ctx, r.Name, r.Pass)
		if isolate.Lacking(err) {
			continue
		} else if err != nil {
			return all, err
		}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		all[r.Key] = string(data)
	}
	return all, nil
}

// No certificate depends on the order in which entries, and so forms, are asked for.
func TestCertificatesDoNotDependOnTheOrderOfForms(t *testing.T) {
	for _, name := range engines {
		trace, i := opened(t, name)
		want, err := certificates(t.Context(), t, trace, i, 0)
		if err != nil || len(want) < 50 {
			t.Fatalf("%s: %d certificates, %v", name, len(want), err)
		}
		for seed := uint64(1); seed <= 3; seed++ {
			_, i := opened(t, name)
			got, err := certificates(t.Context(), t, trace, i, seed)
			if err != nil {
				t.Fatal(err)
			}
			for key := range want {
				if got[key] != want[key] {
					t.Errorf("%s, %s: in the order of seed %d it is %s, and was %s", name, key, seed, got[key], want[key])
				}
			}
		}
	}
}

// interrupting is a context that ends when it was asked for a number of times.
type interrupting struct {
	context.Context
	left *int
}

func (c interrupting) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// An isolator that was interrupted at any point gives the certificates that it would have given: what was interrupted is asked for again.
func TestInterruptedFormsAreAskedForAgain(t *testing.T) {
	const name = "mlx/gemma-tiny.bfloat16"
	trace, i := opened(t, name)
	want, err := certificates(t.Context(), t, trace, i, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, i = opened(t, name)
	interrupted := 0
	for left := 1; ; left += left/2 + 1 {
		n := left
		_, err := certificates(interrupting{t.Context(), &n}, t, trace, i, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) || left > 1<<30 {
			t.Fatalf("interrupted after %d looks at the context: %v", left, err)
		}
		interrupted++
	}
	got, err := certificates(t.Context(), t, trace, i, 0)
	if err != nil || interrupted < 5 {
		t.Fatalf("%d times interrupted, and then: %v", interrupted, err)
	}
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("%s: after interrupts it is %s, and would be %s", key, got[key], want[key])
		}
	}
}

// A comparison that follows an interrupted one in the same process, with the same isolator, has the result of a first one: as when a watched file changes while it
// is compared.
func TestAComparisonAfterAnInterruptedOne(t *testing.T) {
	const name = "mlx/gemma-tiny.bfloat16"
	run := func(ctx context.Context, trace *capture.Trace, i *compare.Isolator) (string, error) {
		r, err := compare.Alone(ctx, trace, compare.Options{Order: i.List(), Certification: compare.Certification{Isolator: i}, All: true})
		if err != nil {
			return "", err
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(data), nil
	}
	trace, i := opened(t, name)
	want, err := run(t.Context(), trace, i)
	if err != nil {
		t.Fatal(err)
	}
	_, i = opened(t, name)
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if _, err := run(ctx, trace, i); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("interrupted after %s: %v", after, err)
		}
		cancel()
	}
	if got, err := run(t.Context(), trace, i); err != nil || got != want {
		t.Errorf("after interrupts the result is another one: %v\n%s\nwant\n%s", err, got, want)
	}
}
