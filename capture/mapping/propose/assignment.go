package propose

import (
	"math"
	"slices"
)

// assigned chooses the guesses with the largest sum of scores, one for each tensor, and returns the guess of them with the largest score. It is nil without guesses.
func assigned(all []guess) *guess {
	var tensors []*template
	var roles []*role
	for _, g := range all {
		if !slices.Contains(tensors, g.t) {
			tensors = append(tensors, g.t)
		}
		if !slices.Contains(roles, g.r) {
			roles = append(roles, g.r)
		}
	}
	score := make([][]float64, len(tensors))
	at := make([][]int, len(tensors))
	for i := range score {
		score[i], at[i] = make([]float64, len(roles)), slices.Repeat([]int{-1}, len(roles))
	}
	for n, g := range all {
		i, k := slices.Index(tensors, g.t), slices.Index(roles, g.r)
		score[i][k], at[i][k] = g.score(), n
	}
	var best *guess
	for i, k := range assignment(score) {
		if k < 0 || at[i][k] < 0 {
			continue
		}
		if g := &all[at[i][k]]; best == nil || g.score() > best.score() {
			best = g
		}
	}
	return best
}

// assignment gives each row a column of its own, so that the sum of the scores is the largest: the Hungarian method with potentials, O(n³). Scores are not
// below 0. A row without a column has −1.
func assignment(score [][]float64) []int {
	rows, n := len(score), 0
	for _, row := range score {
		n = max(n, len(row), rows)
	}
	cost := func(i, k int) float64 {
		if i < rows && k < len(score[i]) {
			return -score[i][k]
		}
		return 0
	}
	u, v := make([]float64, n+1), make([]float64, n+1)
	row, way := make([]int, n+1), make([]int, n+1) // row of a column, from 1; 0 for none
	for i := 1; i <= n; i++ {
		row[0] = i
		least, used := slices.Repeat([]float64{math.Inf(1)}, n+1), make([]bool, n+1)
		k0 := 0
		for row[k0] != 0 {
			used[k0] = true
			i0, delta, k1 := row[k0], math.Inf(1), 0
			for k := 1; k <= n; k++ {
				if used[k] {
					continue
				}
				if c := cost(i0-1, k-1) - u[i0] - v[k]; c < least[k] {
					least[k], way[k] = c, k0
				}
				if least[k] < delta {
					delta, k1 = least[k], k
				}
			}
			for k := 0; k <= n; k++ {
				if used[k] {
					u[row[k]] += delta
					v[k] -= delta
				} else {
					least[k] -= delta
				}
			}
			k0 = k1
		}
		for k0 != 0 {
			row[k0] = row[way[k0]]
			k0 = way[k0]
		}
	}
	out := slices.Repeat([]int{-1}, rows)
	for k := 1; k <= n; k++ {
		if i := row[k] - 1; i >= 0 && i < rows && k-1 < len(score[i]) && score[i][k-1] > 0 {
			out[i] = k - 1
		}
	}
	return out
}
