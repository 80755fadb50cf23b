// Package permute lists the orders of a few things.
package permute

import "iter"

// All yields the n! orders of the numbers 0 to n-1 in lexicographic order, each order as a new slice.
func All(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		used := make([]bool, n)
		var extend func(begun []int) bool
		extend = func(begun []int) bool {
			if len(begun) == n {
				return yield(append([]int{}, begun...))
			}
			for i := range n {
				if used[i] {
					continue
				}
				used[i] = true
				if !extend(append(begun, i)) {
					return false
				}
				used[i] = false
			}
			return true
		}
		extend(make([]int, 0, n))
	}
}
