package foreign

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
)

// schemes are the folders of tools. Each scheme reports whether it knows a folder. If so, it has listed the tensors in the
// folder's file, under keys of [capture.Key].
var schemes = []func(*dump.Dir) (bool, error){sglangPasses, sglangDumper, debugTree, msprobe}

// named is one tensor with its pass and name in a scheme.
type named struct {
	pass, index int // index is the place among the tensors of the pass, if known
	name        string
	tensor      container.Tensor
}

// list puts tensors into a folder's file. Later tensors of the same name and pass become further firings.
func list(d *dump.Dir, all []named) {
	slices.SortStableFunc(all, func(a, b named) int { return cmp.Or(cmp.Compare(a.pass, b.pass), cmp.Compare(a.index, b.index)) })
	fired := map[string]int{}
	f := d.File()
	for _, n := range all {
		key := capture.Key(n.pass, n.name, 0)
		n.tensor.Name = capture.Key(n.pass, n.name, fired[key])
		fired[key]++
		f.Tensors = append(f.Tensors, n.tensor)
	}
}

// ranks refuses a folder with the tensors of several ranks.
func ranks(names []string) error {
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 1 {
		return hint.Add(fmt.Errorf("tensors of %d ranks, %s and others", len(names), plain.Quote(names[0])),
			"if the tensors of one rank are whole, name the folder of that rank; join shards of several ranks first")
	}
	return nil
}

// consecutive maps the numbers of steps to passes 0, 1, 2 ...: steps are counted from 0 or 1, without gaps.
func consecutive(steps []int) (map[int]int, error) {
	slices.Sort(steps)
	steps = slices.Compact(steps)
	passes := map[int]int{}
	for i, s := range steps {
		if steps[0] > 1 || s != steps[0]+i {
			return nil, hint.Add(fmt.Errorf("its steps are %d to %d, and some steps from 0 or 1 on are missing", steps[0], steps[len(steps)-1]),
				"a run begins with pass 0: dump every step from the first one on")
		}
		passes[s] = i
	}
	return passes, nil
}

// passFile is a file of SGLang's forward hooks.
var passFile = regexp.MustCompile(`^(?:(.+)/)?Pass(\d{5})\.pt$`)

// sglangPasses is the folder of SGLang's --debug-tensor-dump-output-folder: a file for each pass, in a folder for each rank. The hook of
// SGLang writes the file of a pass before it adds the output of the body and the tensors after the body, the logits too. So these
// tensors stand in the file of the next pass, and sglangPasses moves them to their own pass.
func sglangPasses(d *dump.Dir) (bool, error) {
	var folders []string
	var steps []int
	for _, m := range d.Members {
		parts := passFile.FindStringSubmatch(m.Path)
		if parts == nil {
			return false, nil
		}
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			return false, nil
		}
		folders, steps = append(folders, parts[1]), append(steps, n)
	}
	if !slices.ContainsFunc(d.Members, func(m *dump.Member) bool {
		return slices.ContainsFunc(m.Tensors, func(t container.Tensor) bool { return strings.HasPrefix(t.Name, "model.forward_batch_info.") })
	}) {
		return false, nil
	}
	if err := ranks(folders); err != nil {
		return true, err
	}
	passes, err := consecutive(slices.Clone(steps))
	if err != nil {
		return true, err
	}
	var all []named
	moved, lost := 0, 0
	for i, m := range d.Members {
		pass := passes[steps[i]]
		for k, t := range m.Tensors {
			n := named{pass, k, sglangName(t.Name), t}
			if !strings.HasPrefix(t.Name, "model.") {
				// A tensor after the body belongs to the pass before.
				if n.pass--; n.pass < 0 {
					lost++
					continue
				}
				n.index += len(d.Members) + 1<<20
				moved++
			}
			all = append(all, n)
		}
	}
	d.File().Note("SGLang's forward hooks: a file is a pass; %d tensors that SGLang writes into the file of the next pass, such as the logits, are moved to their own pass, and the last pass lacks them", moved)
	if lost > 0 {
		d.File().Note("%d tensors of a pass before the first file left out", lost)
	}
	list(d, all)
	return true, nil
}

// sglangName is the name in the order for a module of SGLang, or else the module's own name. A norm that adds the
// residual returns the normed tensor (.0) and the sum.
func sglangName(name string) string {
	if roles := spelling.Roles(spelling.SGLang, spelling.Activation, name); len(roles) > 0 {
		return roles[0]
	}
	if base, ok := strings.CutSuffix(name, ".0"); ok && strings.HasSuffix(base, "norm") {
		return base
	}
	return name
}

// sglangDumper is the folder of SGLang's dumper: a file for each tensor, with tags in the file name.
func sglangDumper(d *dump.Dir) (bool, error) {
	var all []named
	var ranksOf []string
	var steps []int
	for _, m := range d.Members {
		tags, ok := tagsOf(path.Base(m.Path))
		if !ok {
			return false, nil
		}
		step, err := strconv.Atoi(cmp.Or(tags["step"], tags["curr_step"], "0"))
		index, err2 := strconv.Atoi(cmp.Or(tags["dump_index"], "0"))
		t, one := valueOf(m)
		if err = errors.Join(err, err2); err != nil || !one {
			return true, fmt.Errorf("%s: want a step, a dump_index and one tensor", plain.Quote(m.Path))
		}
		ranksOf, steps = append(ranksOf, path.Dir(m.Path)+" rank "+tags["rank"]), append(steps, step)
		all = append(all, named{step, index, dumperName(tags), t})
	}
	if err := ranks(ranksOf); err != nil {
		return true, err
	}
	passes, err := consecutive(steps)
	if err != nil {
		return true, err
	}
	for i := range all {
		all[i].pass = passes[all[i].pass]
	}
	d.File().Notes = nil // the notes are about the tags in each file
	d.File().Note("SGLang's dumper: a file is a tensor, a step is a pass")
	list(d, all)
	return true, nil
}

// tagsOf reads "step=0___rank=0___dump_index=3___name=q.pt".
func tagsOf(file string) (map[string]string, bool) {
	tags := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimSuffix(file, ".pt"), "___") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, false
		}
		tags[key] = value
	}
	return tags, tags["name"] != ""
}

// valueOf is the tensor of a file of the dumper: the item "value" of the file or, in old files, the whole file.
func valueOf(m *dump.Member) (container.Tensor, bool) {
	if m.Whole {
		return m.Tensors[0], true
	}
	var found []container.Tensor
	for _, t := range m.Tensors {
		if t.Name == "value" {
			found = append(found, t)
		}
	}
	if len(found) != 1 {
		return container.Tensor{}, false
	}
	return found[0], true
}

// dumperName is the name in the order for a tensor of the dumper: the name of the module that returns the tensor, with
// the layer of the tag layer_id if the name has no layer.
func dumperName(tags map[string]string) string {
	name := tags["name"]
	if module, ok := strings.CutPrefix(name, "non_intrusive__"); ok {
		name = strings.TrimSuffix(strings.TrimSuffix(module, ".0"), ".output")
	}
	if layer := tags["layer_id"]; layer != "" && !strings.Contains(name, spelling.Layers+".") {
		name = order.NameIn(layer, name).String()
	}
	return sglangName(name)
}

// treeSuffix ends the name of the file that marks a folder of model_debugging_utils.
const treeSuffix = "_debug_tree_FULL_TENSORS.json"

// debugTree is the folder of model_addition_debugger_context of transformers with use_repr=False: a safetensors file for each
// input and output, with the path of the module in the file name. A later forward call overwrites the files of the call
// before.
func debugTree(d *dump.Dir) (bool, error) {
	class := ""
	for _, name := range d.Others {
		if c, ok := strings.CutSuffix(name, treeSuffix); ok {
			class = c
		}
	}
	if class == "" {
		return false, nil
	}
	var all []named
	seen := map[string]bool{}
	slices.SortStableFunc(d.Members, func(a, b *dump.Member) int {
		return -cmp.Compare(strings.Count(a.Path, class+"_"), strings.Count(b.Path, class+"_"))
	})
	for _, m := range d.Members {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(m.Path, ".safetensors"), class)
		if !ok || len(m.Tensors) != 1 || m.Tensors[0].Name != "data" {
			return true, fmt.Errorf("%s is not a file of a debug tree of %s", plain.Quote(m.Path), class)
		}
		// One tensor can be the input of the model and the input of its first module: the files of the model come
		// first.
		if name := debugName(strings.TrimPrefix(rest, ".")); !seen[name] {
			seen[name] = true
			all = append(all, named{0, 0, name, m.Tensors[0]})
		}
	}
	d.File().Note("the debug tree of transformers: it has only the last forward call, and only outputs of modules without children")
	list(d, all)
	return true, nil
}

// debugName is the name for a file such as "model.layers.0.mlp.up_proj_outputs". The only output of a module gets the module's
// name, and an output of the model keeps its own name. An input gets its name from [inputName].
func debugName(file string) string {
	if module, what, ok := cut(file, "_outputs"); ok {
		switch {
		case module == "":
			return strings.TrimPrefix(what, "_")
		case what == "":
			return module
		}
		return module + ".output" + strings.ReplaceAll(what, "_", ".")
	}
	module, what, _ := cut(file, "_inputs")
	what = strings.TrimPrefix(strings.TrimPrefix(what, "_kwargs_"), "_args_")
	return inputName(module, what)
}

// cut is strings.Cut at the last occurrence.
func cut(s, sep string) (before, after string, ok bool) {
	at := strings.LastIndex(s, sep)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(sep):], true
}

// aLayer is the module of a layer.
var aLayer = regexp.MustCompile(`(^|\.)` + spelling.Layers + `\.\d+$`)

// inputName is the name of an input of a module. The order has names for the first input of a layer, "in", and for the input
// of the embedding, which is the token ids.
func inputName(module, what string) string {
	switch {
	case module == "" && what == "0":
		return "input_ids"
	case module == "":
		return what
	case strings.HasSuffix(module, "embed_tokens") && (what == "0" || what == "input"):
		return "input_ids"
	case aLayer.MatchString(module) && (what == "0" || what == "hidden_states"):
		return module + ".in"
	}
	return module + ".input." + what
}

// moduleFile is a file of msprobe at its level L0: the input or output of a call of a module.
var moduleFile = regexp.MustCompile(`^(?:(?:.*/)?step(\d+)/)?(?:((?:rank|proc)\d*)/)?dump_tensor_data/Module\.(.+)\.(\w+)\.forward\.(\d+)\.(input|kwargs|output)\.(.+)\.(?:pt|npy)$`)

// probed is a file of msprobe.
type probed struct {
	named
	step   int
	module string // of the named input or output
}

// msprobe is the folder of msprobe: step<N>/rank<N>/dump_tensor_data, or step<N>/proc<N>/dump_tensor_data, with a file for each input and output of
// each call. The calls of one step are the passes. In a folder of several steps, each step is a pass and has one call. A module with more calls than
// the embedding is left out, since the pass of a call is unknown.
func msprobe(d *dump.Dir) (bool, error) {
	var all []probed
	var steps []int
	var ranksOf []string
	calls := map[string]int{}
	most := 0 // calls of the embedding, one for each pass
	for i, m := range d.Members {
		if !strings.Contains("/"+m.Path, "/dump_tensor_data/") {
			return false, nil
		}
		parts := moduleFile.FindStringSubmatch(m.Path)
		if parts == nil || !m.Whole {
			continue
		}
		step, err := strconv.Atoi(cmp.Or(parts[1], "0"))
		call, err2 := strconv.Atoi(parts[5])
		if err != nil || err2 != nil {
			return true, fmt.Errorf("%s: not a number", plain.Quote(m.Path))
		}
		name := inputName(parts[3], parts[7])
		if parts[6] == "output" {
			if name = parts[3]; parts[7] != "0" {
				name += ".output." + parts[7]
			}
		}
		steps, ranksOf = append(steps, step), append(ranksOf, parts[2])
		calls[parts[3]] = max(calls[parts[3]], call+1)
		if strings.HasSuffix(parts[3], "embed_tokens") {
			most = max(most, call+1)
		}
		all = append(all, probed{named{call, i, name, m.Tensors[0]}, step, parts[3]})
	}
	if len(all) == 0 {
		return false, nil
	}
	if err := ranks(ranksOf); err != nil {
		return true, err
	}
	passes, err := consecutive(steps)
	if err != nil {
		return true, err
	}
	if most = max(most, 1); len(passes) > 1 && most > 1 {
		return true, hint.Add(errors.New("several steps with several forward calls each"), "name the folder of one step")
	}
	var known []named
	for _, p := range all {
		if len(passes) > 1 {
			p.pass += passes[p.step]
		}
		if calls[p.module] <= most {
			known = append(known, p.named)
		}
	}
	f := d.File()
	f.Note("msprobe: outputs and inputs of modules, a forward call is a pass")
	if n := len(d.Members) - len(known); n > 0 {
		f.Note("%d files left out: they belong to no forward call of a module, or to a module that is called several times a pass", n)
	}
	list(d, known)
	return true, nil
}
