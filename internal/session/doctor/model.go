package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// checkModel finds the model directory and reads what family it is of.
func (p *Patient) checkModel(_ context.Context, s *health.Section) {
	if err := p.findModel(); err != nil {
		s.Fail("--model wants a directory with config.json and model.safetensors", "%v", err)
		p.folder = nil
		return
	}
	p.checkConfig(s)
}

// findModel finds the files of the directory, or of the embedded checkpoint.
func (p *Patient) findModel() (err error) {
	if p.Model == "" {
		p.folder, err = fs.Sub(fixtures.Files, session.Embedded)
		return err
	}
	switch info, err := os.Stat(p.Model); {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a file", p.Model)
	}
	p.folder = os.DirFS(p.Model)
	return nil
}

// name is what lines call the model.
func (p *Patient) name() string {
	if p.Model == "" {
		return "fixtures/" + session.Embedded
	}
	return p.Model
}

// open opens the checkpoint as a run does.
func (p *Patient) open() (*checkpoint.Checkpoint, error) {
	if p.Model == "" {
		return checkpoint.OpenFS(p.name(), p.folder)
	}
	return checkpoint.Open(p.Model)
}

// checkWeights looks at the weights: are they whole, all there, and loaded as they were saved?
func (p *Patient) checkWeights(ctx context.Context, s *health.Section) {
	if p.folder == nil {
		return
	}
	names, sound := health.WeightFiles(s, p.folder)
	if sound && p.list != nil {
		p.readWeights(ctx, s, names)
	}
	if sound && p.recorded != nil {
		p.fitProgram(s)
	}
	if p.Port != "" {
		p.comparePort(ctx, s)
	}
}

// fitProgram holds the weights to what the recorded program reads.
func (p *Patient) fitProgram(s *health.Section) {
	ck, err := p.open()
	if err != nil {
		s.Fail(Hint(err), "%v", err)
		return
	}
	defer ck.Close() // read only: closing has nothing to say
	if weightsFit(s, ck.Require(wantsOf(p.recorded))) {
		s.OK("all weights that the program reads are there, with its shapes")
	}
}

// wantsOf are the weights of a list.
func wantsOf(list *order.List) (wants []checkpoint.Want) {
	for _, w := range list.Weights() {
		wants = append(wants, checkpoint.Want{Name: w.Name, Fallback: w.Fallback, Shape: w.Shape})
	}
	return wants
}

// maxPortLines is how many things that are wrong with a port's weights are said: tracediff weights says all.
const maxPortLines = 5

// comparePort compares the port's weights with those of the model.
func (p *Patient) comparePort(ctx context.Context, s *health.Section) {
	r, err := session.Weights(ctx, session.AskedWeights{Local: p.Port, Model: p.Model, Map: p.Map})
	if err != nil {
		s.Fail(Hint(err), "%v", err)
		return
	}
	for i := range r.Findings {
		if i == maxPortLines {
			s.Fail("tracediff weights LOCAL --model DIR lists them", "%d more findings in the weights of the port", len(r.Findings)-i)
			break
		}
		f := &r.Findings[i]
		is := "" // of a class that no sentence says
		if f.Class == weights.Unidentified {
			is = " is UNIDENTIFIED"
		}
		s.Fail(strings.Join(f.Steps(), "; "), "%s of the port%s: %s", f.Name(), is, f.What)
	}
	if r.Right() {
		s.OK("the port's weights, %s: %d equal, %d cast, %d quantised, of %d", p.Port, r.Counts.Equal, r.Counts.Cast, r.Counts.Quantised, len(r.Tensors))
	}
}

// checkDecode looks at what ends a generation.
func (p *Patient) checkDecode(_ context.Context, s *health.Section) {
	if p.config != nil {
		health.Generation(s, p.folder, p.vocabulary())
	}
}

// vocabulary is what config.json says of ids.
func (p *Patient) vocabulary() health.Vocabulary {
	return health.Vocabulary{Size: p.config.VocabSize, BOS: p.config.Tokens.BOS, PAD: p.config.Tokens.PAD, EOS: p.config.Tokens.EOS}
}

// checkConfig reads config.json, and describes the family by it.
func (p *Patient) checkConfig(s *health.Section) {
	if health.Pointer(p.folder, checkpoint.ConfigFile) {
		s.Fail("run git lfs pull in the directory", "%s is a git-lfs pointer, not the configuration", checkpoint.ConfigFile)
		return
	}
	data, err := checkpoint.ReadConfig(p.folder)
	if err == nil {
		p.config, err = order.ReadConfig(data)
	}
	if order.Undescribed(err) {
		p.checkGeneral(s, data)
		return
	}
	if err != nil {
		s.Fail(Hint(err), "%v", err)
		return
	}
	p.spread = initialSpread(data)
	c := p.config
	s.OK("%s: %s, %d layers of width %d, vocabulary %d", p.name(), c.ModelType, c.NumLayers, c.HiddenSize, c.VocabSize)
	if c.DType == "" {
		s.Warn("choose with --dtype", "config.json declares no dtype: auto is float32")
	}
	if _, err := p.ComputedIn(c.DType); err != nil {
		s.Fail(Hint(err), "%v", err)
	}
	if p.list, err = order.New(c); err != nil {
		s.Fail(Hint(err), "%v", err)
	}
}

// checkGeneral reads what any config.json says, of a model that no order describes.
func (p *Patient) checkGeneral(s *health.Section, data []byte) {
	general, err := order.ReadGeneral(data)
	if err != nil {
		s.Fail(Hint(err), "%v", err)
		return
	}
	p.config, p.undescribed = &general.Config, true
	if p.Program != "" {
		p.checkProgram(s, general.ModelType)
		return
	}
	s.Warn("there is no local model and no check of its weights: tracediff capture --side reference --reference hf --model DIR records its operations, for which Python is needed once",
		"%s: no order describes a model of type %q: its operations are recorded as transformers runs it", p.name(), general.ModelType)
	if _, err := p.ComputedIn(p.config.DType); err != nil {
		s.Fail(Hint(err), "%v", err)
	}
}

// checkProgram reads the recorded program that was named, which stands in the place of an order: its weights have to be those of the
// checkpoint.
func (p *Patient) checkProgram(s *health.Section, modelType string) {
	list, err := session.ReadProgram(p.Program)
	if err != nil {
		s.Fail(Hint(err), "%v", err)
		return
	}
	p.recorded = list
	s.OK("%s: type %q, by the recorded program %s: %d tensors with a name, %d layers", p.name(), modelType, p.Program, len(list.Named().Entries), list.Config.NumLayers)
	if _, err := p.ComputedIn(p.config.DType); err != nil {
		s.Fail(Hint(err), "%v", err)
	}
}

// initialSpread is the deviation with which transformers fills the matrices of a model: 0.02, unless config.json, or the
// part of it that is the text model's, says otherwise. It is no arithmetic, so the resolved configuration does not have it.
func initialSpread(config []byte) float64 {
	type settings struct {
		Range *float64 `json:"initializer_range"`
	}
	var c struct {
		settings
		Text *settings `json:"text_config"`
	}
	if err := json.Unmarshal(config, &c); err == nil {
		if c.Text != nil {
			c.settings = *c.Text
		}
		if c.Range != nil && *c.Range > 0 {
			return *c.Range
		}
	}
	return 0.02
}

// readWeights opens the weights and looks at what the model takes of them, and at what it does not.
func (p *Patient) readWeights(ctx context.Context, s *health.Section, names []string) {
	ck, err := p.open()
	if err != nil {
		s.Fail(Hint(err), "%v", err)
		return
	}
	defer ck.Close() // read only: closing has nothing to say
	wants := wantsOf(p.list)
	if weightsFit(s, ck.Require(wants)) {
		s.OK("all weights that the model needs are there, with the shapes of config.json")
	}
	p.extra(s, ck.Prefix(), names)
	weights := p.weights(ck, wants)
	health.DTypes(s, weights)
	p.head(s, ck)
	health.Values(ctx, s, weights, p.spread, p.Full)
	if m := health.Memory(); m.Available > 0 && ck.Size() > m.Available {
		s.Warn("the local model maps them and reads what it needs; --reference hf needs a machine with more memory",
			"the weights take %s, and %s of memory are available: transformers holds all of them", amount.Bytes(ck.Size()), amount.Bytes(m.Available))
	}
}

// maxProblems keeps the list readable when a whole model is of another shape.
const maxProblems = 20

// weightsFit adds a line for each weight that is not as it should be, and reports whether there was none.
func weightsFit(s *health.Section, err error) bool {
	var e *checkpoint.WeightsError
	if err == nil {
		return true
	}
	if !errors.As(err, &e) {
		s.Fail(Hint(err), "%v", err)
		return false
	}
	for i, problem := range e.Problems {
		switch last := i == len(e.Problems)-1; {
		case last:
			s.Fail(e.Hint(), "weight %s", problem)
		case i == maxProblems-1:
			s.Fail(e.Hint(), "weight %s, and %d more weights do not fit", problem, len(e.Problems)-maxProblems)
			return false
		default:
			s.Fail("", "weight %s", problem)
		}
	}
	return false
}

// weights returns those of the model that can be read, with what each is for.
func (p *Patient) weights(ck *checkpoint.Checkpoint, wants []checkpoint.Want) []health.Weight {
	roles := map[string]health.Role{}
	for _, e := range p.list.Entries {
		if norm, ok := e.Op.(op.RMSNorm); ok && len(e.Weights) == 1 {
			roles[e.Weights[0].Name] = health.Gain
			if norm.Gain == op.OnePlus {
				roles[e.Weights[0].Name] = health.OneGain
			}
		}
	}
	var weights []health.Weight
	for _, w := range wants {
		t, ok := ck.Tensor(w.Name)
		if !ok || !t.DType.Float() {
			continue
		}
		role := roles[w.Name]
		if strings.HasSuffix(w.Name, ".bias") {
			role = health.Bias
		}
		weights = append(weights, health.Weight{Name: w.Name, Role: role, Tensor: t})
	}
	return weights
}

// headName and embedName are the weights that a tied model has once.
const (
	headName  = "lm_head.weight"
	embedName = "embed_tokens.weight"
)

// head looks at a head that should be the embedding. One that is missing where it is wanted is among the weights.
func (p *Patient) head(s *health.Section, ck *checkpoint.Checkpoint) {
	head, has := ck.Tensor(headName)
	embedding, ok := ck.Tensor(embedName)
	switch {
	case !ok || !has && !p.config.Tied:
	case !has:
		s.OK("no %s in the file: the head is %s, as tie_word_embeddings says", headName, embedName)
	case p.config.Tied:
		health.Head(s, health.Weight{Name: headName, Tensor: head}, health.Weight{Name: embedName, Tensor: embedding}, p.Full)
	default:
		s.OK("%s stands in the file: tie_word_embeddings is false", headName)
	}
}

// otherTowers are the parts of multimodal checkpoints that are not the text model.
var otherTowers = []string{"vision_tower.", "vision_model.", "audio_tower.", "embed_vision.", "embed_audio.", "multi_modal_projector."}

// extra says which tensors of the files the model does not read: those of other towers, those that are known to be left
// over, and those that nobody expects.
func (p *Patient) extra(s *health.Section, prefix string, names []string) {
	wanted := map[string]bool{headName: true, "language_model." + headName: true}
	for _, w := range p.list.Weights() {
		wanted[prefix+w.Name] = true
	}
	var others, leftover int
	var unexpected []string
	for _, name := range names {
		rest, inside := strings.CutPrefix(name, prefix)
		switch {
		case wanted[name]:
		case !inside || hasPrefix(strings.TrimPrefix(name, "model."), otherTowers):
			others++
		case p.leftOver(rest):
			leftover++
		default:
			unexpected = append(unexpected, name)
		}
	}
	if others > 0 {
		s.OK("ignored, outside of the text model: %s", amount.Of(others, "tensor"))
	}
	if leftover > 0 {
		s.OK("ignored, as no operation reads them (keys and values of sharing layers, rotary frequencies, scales turned off): %s", amount.Of(leftover, "tensor"))
	}
	if n := len(unexpected); n > 0 {
		s.Warn("config.json may be of a smaller model, or the family has a part that is not described here",
			"%s below %q that the model does not read, such as %.120q", amount.Of(n, "tensor"), prefix, unexpected[0])
	}
}

// leftOver reports names that files have and the model rightly passes over.
func (p *Patient) leftOver(name string) bool {
	// Frequencies are computed from the configuration today; a scale is saved where altup_correct_scale turns it off.
	if strings.HasSuffix(name, "rotary_emb.inv_freq") || strings.HasSuffix(name, ".altup.correct_output_scale") {
		return true
	}
	var layer int
	var part string
	if n, _ := fmt.Sscanf(name, "layers.%d.self_attn.%s", &layer, &part); n != 2 {
		return false
	}
	return layer >= p.config.FirstShared() && layer < p.config.NumLayers && hasPrefix(part, []string{"k_proj.", "v_proj.", "k_norm.", "v_norm."})
}

// hasPrefix reports whether name starts with one of the prefixes.
func hasPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
