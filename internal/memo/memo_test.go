package memo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracediff/tracediff/internal/memo"
)

func numbers() *memo.Map[int, int] {
	return &memo.Map[int, int]{Place: func(n int) memo.Place { return memo.Place{n} }, Name: func(n int) string { return fmt.Sprint("question ", n) }}
}

// An answer is found once, whoever asks, and may ask for lower ones.
func TestAnswersAreFoundOnce(t *testing.T) {
	m, found := numbers(), atomic.Int64{}
	var fibonacci func(ctx context.Context, n int) (int, error)
	fibonacci = func(ctx context.Context, n int) (int, error) {
		return m.Get(ctx, n, func(ctx context.Context) (int, error) {
			found.Add(1)
			if n < 2 {
				return n, nil
			}
			a, err := fibonacci(ctx, n-1)
			if err != nil {
				return 0, err
			}
			b, err := fibonacci(ctx, n-2)
			return a + b, err
		})
	}
	var wait sync.WaitGroup
	for k := range 8 {
		wait.Go(func() {
			if got, err := fibonacci(t.Context(), 40-k%3); err != nil || k%3 == 0 && got != 102334155 {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
	wait.Wait()
	if found.Load() != 41 {
		t.Errorf("41 answers were found %d times", found.Load())
	}
}

// An interrupted question is asked again: by the next caller, and by callers who waited for it. An error of another kind is remembered.
func TestInterruptionsAreNotRemembered(t *testing.T) {
	m := numbers()
	ctx, cancel := context.WithCancel(t.Context())
	started, waiting := make(chan struct{}), make(chan error)
	go func() {
		<-started
		_, err := m.Get(t.Context(), 1, func(context.Context) (int, error) { return 7, nil })
		waiting <- err
	}()
	_, err := m.Get(ctx, 1, func(ctx context.Context) (int, error) {
		close(started)
		cancel()
		return 0, fmt.Errorf("reading: %w", ctx.Err())
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-waiting; err != nil {
		t.Error("who waited has ", err)
	}
	got, err := m.Get(t.Context(), 1, func(context.Context) (int, error) { return 8, nil })
	if got != 7 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	broken := errors.New("broken")
	for range 2 {
		_, err := m.Get(t.Context(), 2, func(context.Context) (int, error) { err := broken; broken = nil; return 0, err })
		if err == nil || m.Has(2) {
			t.Error("an error was forgotten")
		}
	}
}

// Who waits for another's answer ends with its own context.
func TestWaitingEndsWithItsContext(t *testing.T) {
	m := numbers()
	started, end := make(chan struct{}), make(chan struct{})
	go m.Get(t.Context(), 1, func(context.Context) (int, error) { close(started); <-end; return 1, nil }) //nolint:errcheck // its answer is not asked for
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Get(ctx, 1, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(end)
}

// A question that asks for itself, or for one that comes after it, has an error and does not wait.
func TestOrderIsHeld(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m := numbers()
	for _, asked := range []int{5, 6} {
		_, err := m.Get(ctx, 5, func(ctx context.Context) (int, error) {
			return m.Get(ctx, asked, func(context.Context) (int, error) { return 1, nil })
		})
		var order *memo.OrderError
		if !errors.As(err, &order) || order.By != "question 5" || order.Asked != fmt.Sprint("question ", asked) {
			t.Errorf("question 5 asks for question %d: %v", asked, err)
		}
		m = numbers()
	}
}

// Once answers its question once, and any answer may ask it, though its own answer asks maps of its own. An interrupted call is no answer.
func TestOnce(t *testing.T) {
	inner, outer, calls := numbers(), numbers(), 0
	once := memo.Once("the question", func(ctx context.Context) (int, error) {
		calls++
		return inner.Get(ctx, 9, func(ctx context.Context) (int, error) { return 5, ctx.Err() })
	})
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := once(interrupted); !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted call: %v", err)
	}
	for range 2 {
		got, err := outer.Get(t.Context(), 1, func(ctx context.Context) (int, error) { return once(ctx) })
		if got != 5 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls, one of them interrupted", calls)
	}
}

// An answer that would wait for itself by way of Once is an error, and no wait for ever.
func TestOnceThatWaitsForItself(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m := numbers()
	var again, round func(context.Context) (int, error)
	again = memo.Once("itself", func(ctx context.Context) (int, error) { return again(ctx) })
	five := func(ctx context.Context) (int, error) { return m.Get(ctx, 5, round) }
	round = memo.Once("round", five)
	for what, ask := range map[string]func(context.Context) (int, error){"itself": again, "question 5": five} {
		var out *memo.OrderError
		if _, err := ask(ctx); !errors.As(err, &out) || out.Asked != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}
