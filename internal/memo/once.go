package memo

import "context"

// Once returns a function that calls find once and remembers its answer, as [sync.OnceValues] does, but for an error of the context. Any answer of a
// [Map] may call the function, and the place of the caller does not count: find has to ask other maps, whose answers never call the function. An
// answer that would wait for itself gets an [*OrderError], in which name stands for the question.
func Once[V any](name string, find func(ctx context.Context) (V, error)) func(ctx context.Context) (V, error) {
	var only Map[struct{}, V]
	return func(ctx context.Context) (V, error) {
		return only.get(ctx, struct{}{}, &asking{name: name, of: &only}, find)
	}
}
