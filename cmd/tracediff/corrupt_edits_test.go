package main

import (
	"slices"
	"strings"
)

// filling gives every element of a tensor one number.
func filling(y float64) func(*stFile, string) {
	return func(f *stFile, at string) {
		f.at(at).change(func(x []float64) {
			for i := range x {
				x[i] = y
			}
		})
	}
}

// changingValues changes the values of a tensor, one by one.
func changingValues(do func(i int, x float64) float64) func(*stFile, string) {
	return func(f *stFile, at string) {
		f.at(at).change(func(x []float64) {
			for i, v := range x {
				x[i] = do(i, v)
			}
		})
	}
}

// swapping swaps the data of two tensors; the name of the second is made of the first's.
func swapping(other func(at string) string) func(*stFile, string) {
	return func(f *stFile, at string) {
		a, b := f.at(at), f.at(other(at))
		a.Data, b.Data, a.Shape, b.Shape, a.DType, b.DType = b.Data, a.Data, b.Shape, a.Shape, b.DType, a.DType
	}
}

func instead(from, to string) func(string) string {
	return func(at string) string { return strings.Replace(at, from, to, 1) }
}

// shaping changes a shape, of the same data.
func shaping(do func(shape []int) []int) func(*stFile, string) {
	return func(f *stFile, at string) { t := f.at(at); t.Shape = do(slices.Clone(t.Shape)) }
}

func permuting(axis int, p func(i, n int) int) func(*stFile, string) {
	return func(f *stFile, at string) { f.at(at).permute(axis, p) }
}

func reversed(i, n int) int { return n - 1 - i }
func rotated(i, n int) int  { return (i + 1) % n }

// both does two things.
func both(a, b func(*stFile, string)) func(*stFile, string) {
	return func(f *stFile, at string) { a(f, at); b(f, at) }
}

func meta(key, value string) func(*stFile, string) {
	return func(f *stFile, _ string) { f.meta[key] = value }
}

func unmeta(keys ...string) func(*stFile, string) {
	return func(f *stFile, _ string) {
		for _, k := range keys {
			delete(f.meta, k)
		}
	}
}

// named changes one of the manifest's lists of names.
func named(key string, do func(names []string) []string) func(*stFile, string) {
	return func(f *stFile, _ string) { f.meta[key] = jsonText(do(f.list(key))) }
}

func appending(names ...string) func([]string) []string {
	return func(l []string) []string { return append(l, names...) }
}

func dropping(gone func(key string) bool) func(*stFile, string) {
	return func(f *stFile, _ string) { f.drop(gone) }
}

func inLayer(layer string) func(string) bool {
	return func(key string) bool { return strings.Contains("/"+key, "/layers."+layer+".") }
}

func inPass(pass string) func(string) bool {
	return func(key string) bool { return strings.HasPrefix(key, pass+"/") }
}

// reordering puts the tensors in another order; their data follow.
func reordering(do func(keys []*stTensor) []*stTensor) func(*stFile, string) {
	return func(f *stFile, _ string) { f.tensors = do(f.tensors) }
}

// moving puts the tensors of a kind before the first of another kind.
func moving(what, before func(key string) bool) func(*stFile, string) {
	return reordering(func(all []*stTensor) []*stTensor {
		var moved, rest []*stTensor
		for _, t := range all {
			if what(t.Key) {
				moved = append(moved, t)
			} else {
				rest = append(rest, t)
			}
		}
		at := slices.IndexFunc(rest, func(t *stTensor) bool { return before(t.Key) })
		return slices.Insert(rest, at, moved...)
	})
}

func is(key string) func(string) bool { return func(k string) bool { return k == key } }

// shorter takes the last layer from the configuration.
func shorter(f *stFile, _ string) {
	f.config(func(c map[string]any) {
		n := int(c["num_hidden_layers"].(float64)) - 1
		c["num_hidden_layers"] = n
		for _, key := range []string{"layer_types", "intermediate_size"} {
			if list, ok := c[key].([]any); ok {
				c[key] = list[:n]
			}
		}
		if g, ok := c["gemma3n"].(map[string]any); ok {
			if list, ok := g["activation_sparsity_pattern"].([]any); ok {
				g["activation_sparsity_pattern"] = list[:n]
			}
		}
	})
}

// notHere is the panic of a kind that this golden has nothing for.
const notHere = "nothing here to corrupt"
