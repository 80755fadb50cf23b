// Package memo answers each question once, where questions ask one another.
//
// An answer is found by the first who asks, and whoever asks meanwhile waits for it. Answers ask for other answers, so a wrong question in the wrong place waits
// for itself, for ever if several goroutines ask. So every question has a [Place] in one order, and an answer may only ask for answers of lower places: who
// waits, waits for a lower place, and the lowest waits for nobody. The context carries the place of the question that is being answered. [Map.Get] returns an
// [*OrderError] instead of waiting where a question asks for its own place or a higher one.
//
// An error of the context is no answer: if the first who asked was interrupted, the next finds the answer anew. Any other error is an answer.
package memo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Place is where a question stands in the order: the first numbers that differ decide, as in a dictionary.
type Place []int

// before reports whether an answer at q may ask for p.
func (p Place) before(q Place) bool { return slices.Compare(p, q) < 0 }

// OrderError is the error of an answer that asks a question out of order: the question does not come before the answer's own.
type OrderError struct {
	Asked, By string // the questions, as their maps name them
}

// Error names the question and the one that it was asked by.
func (e *OrderError) Error() string {
	return fmt.Sprintf("%s asks for %s, which does not come before it", e.By, e.Asked)
}

// asking is a question that is being answered, in a context.
type asking struct {
	place Place
	name  string
	of    any     // the map, and its question
	key   any     // nil for a question of [Once], whose answer may ask for any place
	by    *asking // the question that asked this one; nil for the first
}

type askingKey struct{}

// mayAsk returns an error if the answer of a may not ask for next: next does not come before it, or next is being answered already.
func (a *asking) mayAsk(next *asking) error {
	if a != nil && a.key != nil && next.key != nil && !next.place.before(a.place) {
		return &OrderError{next.name, a.name}
	}
	for by := a; by != nil; by = by.by {
		if by.of == next.of && by.key == next.key {
			return &OrderError{next.name, a.name}
		}
	}
	return nil
}

// Map has the answers to the questions of one kind. Several goroutines may ask. The zero value with its two functions is ready.
type Map[K comparable, V any] struct {
	Place func(K) Place  // of a question, the same for the same question
	Name  func(K) string // of a question, for an error

	mu      sync.Mutex
	answers map[K]*answer[V]
}

// answer is found, or is being found.
type answer[V any] struct {
	done  chan struct{} // closed when it was found, or given up
	again bool          // it was given up: the context of whoever looked for it ended
	value V
	err   error
}

// Get returns the answer to a question. find finds the answer, with a context that knows the question. The error is find's, ctx's, or an
// [*OrderError].
func (m *Map[K, V]) Get(ctx context.Context, question K, find func(ctx context.Context) (V, error)) (V, error) {
	return m.get(ctx, question, &asking{place: m.Place(question), name: m.Name(question), of: m, key: question}, find)
}

// get is Get for a question that stands as here says.
func (m *Map[K, V]) get(ctx context.Context, question K, here *asking, find func(ctx context.Context) (V, error)) (V, error) {
	here.by, _ = ctx.Value(askingKey{}).(*asking)
	if err := here.by.mayAsk(here); err != nil {
		var none V
		return none, err
	}
	for {
		a, first := m.answer(question)
		if first {
			m.find(context.WithValue(ctx, askingKey{}, here), question, a, find)
			return a.value, a.err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
		if !a.again {
			return a.value, a.err
		}
	}
}

// Has reports whether a question was answered without an error.
func (m *Map[K, V]) Has(question K) bool {
	_, ok := m.Known(question)
	return ok
}

// Known is the answer to a question that was answered without an error; ok is false for any other question.
func (m *Map[K, V]) Known(question K) (v V, ok bool) {
	m.mu.Lock()
	a := m.answers[question]
	m.mu.Unlock()
	if a == nil {
		return v, false
	}
	select {
	case <-a.done:
		return a.value, !a.again && a.err == nil
	default:
		return v, false
	}
}

// Asked reports whether a question was asked: it was answered, or is being answered.
func (m *Map[K, V]) Asked(question K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answers[question] != nil
}

// answer is a question's answer; first is true for the caller who has to find it.
func (m *Map[K, V]) answer(question K) (a *answer[V], first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.answers[question]; a != nil {
		return a, false
	}
	if m.answers == nil {
		m.answers = map[K]*answer[V]{}
	}
	a = &answer[V]{done: make(chan struct{})}
	m.answers[question] = a
	return a, true
}

// find finds an answer, and forgets it if it was given up or if find panics.
func (m *Map[K, V]) find(ctx context.Context, question K, a *answer[V], find func(context.Context) (V, error)) {
	a.again = true
	defer func() {
		if a.again {
			m.mu.Lock()
			delete(m.answers, question)
			m.mu.Unlock()
		}
		close(a.done)
	}()
	a.value, a.err = find(ctx)
	a.again = a.err != nil && (ctx.Err() != nil || errors.Is(a.err, context.Canceled) || errors.Is(a.err, context.DeadlineExceeded))
}
