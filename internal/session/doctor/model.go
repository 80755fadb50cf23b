package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"

	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/order"
)

// model is what the checks find of the model.
type model struct {
	path   string // of the directory that was named; empty: the embedded checkpoint
	folder fs.FS  // the files of path; nil without a directory
	config *order.Config
	list   *order.List // nil: the model is not described, or cannot be read
	// undescribed: no order describes the model, whose operations are recorded; config then is what any config.json says.
	undescribed bool
	recorded    *order.List // the program that was named for such a model; nil where none is
	spread      float64     // of weights before training
}

// find finds the files of the directory, or of the embedded checkpoint.
func (m *model) find() (err error) {
	if m.path == "" {
		m.folder, err = fs.Sub(fixtures.Files, origin.Embedded)
		return err
	}
	switch info, err := os.Stat(m.path); {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a file", m.path)
	}
	m.folder = os.DirFS(m.path)
	return nil
}

// name is what lines call the model.
func (m *model) name() string {
	if m.path == "" {
		return "fixtures/" + origin.Embedded
	}
	return m.path
}

// open opens the checkpoint as a run does.
func (m *model) open() (*checkpoint.Checkpoint, error) {
	if m.path == "" {
		return checkpoint.OpenFS(m.name(), m.folder)
	}
	return checkpoint.Open(m.path)
}

// checkModel finds the model directory and reads what family it is of.
func (p *Patient) checkModel(_ context.Context, s *health.Section) {
	p.model = model{path: p.Model}
	if err := p.model.find(); err != nil {
		s.Fail("--model wants a directory with config.json and model.safetensors", "%s", advice.Words(err))
		p.model.folder = nil
		return
	}
	p.checkConfig(s)
}

// vocabulary returns the vocabulary size and the special ids in config.json.
func (m *model) vocabulary() health.Vocabulary {
	return health.Vocabulary{Size: m.config.VocabSize, BOS: m.config.Tokens.BOS, PAD: m.config.Tokens.PAD, EOS: m.config.Tokens.EOS}
}

// checkDecode looks at what ends a generation.
func (p *Patient) checkDecode(_ context.Context, s *health.Section) {
	if p.model.config != nil {
		health.Generation(s, p.model.folder, p.model.vocabulary())
	}
}

// checkConfig reads config.json, and describes the family by it.
func (p *Patient) checkConfig(s *health.Section) {
	if health.Pointer(p.model.folder, checkpoint.ConfigFile) {
		s.Fail("run git lfs pull in the directory", "%s is a git-lfs pointer, not the configuration", checkpoint.ConfigFile)
		return
	}
	data, err := checkpoint.ReadConfig(p.model.folder)
	if err != nil {
		s.Fail(Hint(err), "%s: %s", p.model.name(), advice.Words(err))
		return
	}
	p.model.config, err = order.ReadConfig(data)
	if order.Undescribed(err) {
		p.checkGeneral(s, data)
		return
	}
	if err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
		return
	}
	p.model.spread = initialSpread(data)
	c := p.model.config
	s.OK("%s: %s, %d layers of width %d, vocabulary %d", p.model.name(), c.ModelType, c.NumLayers, c.HiddenSize, c.VocabSize)
	if c.DType == "" {
		s.Warn("choose with --dtype", "config.json declares no dtype: auto is float32")
	}
	if _, err := p.ComputedIn(c.DType); err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
	}
	if p.model.list, err = order.New(c); err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
	}
}

// checkGeneral reads the general keys of config.json for a model without an order.
func (p *Patient) checkGeneral(s *health.Section, data []byte) {
	general, err := order.ReadGeneral(data)
	if err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
		return
	}
	p.model.config, p.model.undescribed = &general.Config, true
	if p.Program != "" {
		p.checkProgram(s, general.ModelType)
		return
	}
	s.Warn("there is no built-in model and no check of its weights: tracediff capture --side reference --reference hf --model DIR records its operations, which needs Python once",
		"%s: no order describes a model of type %q: its operations are recorded as transformers runs it", p.model.name(), general.ModelType)
	if _, err := p.ComputedIn(p.model.config.DType); err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
	}
}

// checkProgram reads the recorded program from --program, which replaces an order. The program's weights have to
// exist in the checkpoint.
func (p *Patient) checkProgram(s *health.Section, modelType string) {
	list, err := orders.OfProgram(p.Program)
	if err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
		return
	}
	p.model.recorded = list
	s.OK("%s: type %q, by the recorded program %s: %d tensors with a name, %d layers", p.model.name(), modelType, p.Program, len(list.Named().Entries), list.Config.NumLayers)
	if _, err := p.ComputedIn(p.model.config.DType); err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
	}
}

// initialSpread returns the standard deviation of a model's matrices before training: 0.02, unless config.json or
// its text_config says otherwise. It does not affect the arithmetic, so the resolved configuration omits it.
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
