package memo

import "context"

// Once returns a function that calls find once and remembers its answer, as [sync.OnceValues] does, but for an error of the context. Any answer of a
// [Map] may ask the function: find may ask other maps as if nobody had asked. name is the question, for an error.
func Once[V any](name string, find func(ctx context.Context) (V, error)) func(ctx context.Context) (V, error) {
	only := Map[struct{}, V]{Place: func(struct{}) Place { return nil }, Name: func(struct{}) string { return name }}
	return func(ctx context.Context) (V, error) {
		return only.Get(ctx, struct{}{}, func(ctx context.Context) (V, error) {
			return find(context.WithValue(ctx, askingKey{}, nil))
		})
	}
}
