package program

// ByRow reports whether what is done at a step acts on a row of the result by one number: whatever reads it, does so through a
// step that has one number a row, such as a sum or a root, and the result has more.
func (p *Program) ByRow(step int) bool {
	if p.Out.Last() <= 1 {
		return false
	}
	reached := make([]bool, len(p.Steps))
	reached[step] = p.wide(step)
	for i := step + 1; i < len(p.Steps); i++ {
		for _, a := range p.Steps[i].Args {
			reached[i] = reached[i] || reached[a.Step] && p.wide(i)
		}
		if p.Steps[step].Prim == Number { // it is one number wherever it is read
			for _, a := range p.Steps[i].Args {
				reached[i] = reached[i] || a.Step == step && p.wide(i)
			}
		}
	}
	return !reached[p.Out.Step]
}

// wide reports whether a step has several numbers a row.
func (p *Program) wide(step int) bool {
	shape := p.Steps[step].Shape
	return len(shape) > 0 && shape[len(shape)-1] > 1
}
