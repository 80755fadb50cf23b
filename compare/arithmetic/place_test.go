package arithmetic

import (
	"context"
	"errors"
	"testing"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/memo"
)

// key is the form of some operations.
func key(oneToken bool, operations ...string) isolate.FormKey {
	return isolate.NewFormKey(operations, oneToken)
}

// What answers ask for comes before them: each row is a question, and one that its answer asks for.
func TestQuestionsAreInOrder(t *testing.T) {
	small, large := key(false, "linear"), key(false, "linear", "rms_norm")
	for _, c := range []struct {
		why     string
		asking  stage
		of      isolate.FormKey
		asked   stage
		askedOf isolate.FormKey
	}{
		{"smaller forms carry what they prove", stageAlone, large, stageAlone, small},
		{"and those of one token do", stageAlone, large, stageAlone, key(true, "linear")},
		{"the prompt's passes prove a kernel", stageAlone, key(true, "linear"), stageAlone, small},
		{"the passes of both kinds", stageBoth, small, stageAlone, key(true, "linear", "rms_norm")},
		{"habits are those of what entries prove", stageHabits, small, stageAlone, large},
		{"other passes", stageFinal, small, stageAlone, key(true, "linear")},
		{"other passes together", stageFinal, small, stageBoth, small},
		{"habits of other forms", stageFinal, small, stageHabits, large},
		{"entries that were not looked at", stageSampled, small, stageAlone, small},
		{"a kernel is that of a verdict", stageKernel, small, stageFinal, small},
		{"names use kernels", StageNames, small, stageKernel, large},
		{"all may ask for digits", stageAlone, small, stageWider, small},
	} {
		by, asked := place(c.asking, c.of), place(c.asked, c.askedOf)
		if err := asks(t, by, asked); err != nil {
			t.Errorf("%s: %v", c.why, err)
		}
		if err := asks(t, asked, by); err == nil {
			t.Errorf("%s: the other way round nothing is said", c.why)
		}
	}
}

// asks answers a question at one place by that of another, and returns the error.
func asks(t *testing.T, by, of memo.Place) error {
	t.Helper()
	m := memo.Map[string, int]{
		Place: func(name string) memo.Place { return map[string]memo.Place{"by": by, "of": of}[name] }, Name: func(name string) string { return name },
	}
	_, err := m.Get(t.Context(), "by", func(ctx context.Context) (int, error) {
		return m.Get(ctx, "of", func(context.Context) (int, error) { return 1, nil })
	})
	return err
}

// A form whose answer asks for a larger one, or for its own verdict, has an error and does not wait for itself.
func TestAFormThatAsksForALargerOneFails(t *testing.T) {
	k := New(nil, nil)
	small, large := key(false, "linear"), key(false, "linear", "rms_norm")
	none := func(context.Context) (*Form, error) { return &Form{}, nil }
	for _, ask := range []func(ctx context.Context) error{
		func(ctx context.Context) error { _, err := k.own.Get(ctx, large, none); return err },
		func(ctx context.Context) error { _, err := k.own.Get(ctx, small, none); return err },
		func(ctx context.Context) error { _, err := k.joined.Get(ctx, small, none); return err },
		func(ctx context.Context) error {
			_, err := k.final.Get(ctx, large, func(context.Context) (Verdict, error) { return Verdict{}, nil })
			return err
		},
	} {
		_, err := k.own.Get(t.Context(), small, func(ctx context.Context) (*Form, error) { return nil, ask(ctx) })
		var order *memo.OrderError
		if !errors.As(err, &order) {
			t.Errorf("the arithmetic of a form asks for what comes after it: %v", err)
		}
		k = New(nil, nil)
	}
}
