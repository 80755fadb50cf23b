// Package permute lists the orders of a few things.
package permute

import "iter"

// All yields every order of the numbers 0 to n-1, each as a new slice, the sorted one first and the others as words in a
// dictionary. There are n! of them.
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
