package program

// ReadRounded is the site of what [Editor.ReadRounded] adds.
var ReadRounded = Site{Form: readForm, Name: "rounded"}

const readForm = "read"

// ReadRounded makes some of the steps that read a step read its result rounded to the model's dtype.
func (e *Editor) ReadRounded(step int, some func(reader *Step) bool) {
	form, whole := e.form, e.p.Result(step)
	e.form = readForm
	r := e.add(Step{Prim: Round, Name: ReadRounded.Name, Args: []Var{whole}, Shape: whole.shape, Round: Model})
	e.form = form
	for i := range e.p.Steps {
		s := &e.p.Steps[i]
		for k, a := range s.Args {
			if a.step == step && some(s) {
				a.step = r.step
				e.Read(i, k, a)
			}
		}
	}
}
