package weights_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// q8 stores a tensor in blocks of 32 codes of eight bits with a scale of float16 each, as Q8_0 does.
func (x *tensor) q8() {
	x.format, x.group, x.dtype = "Q8_0", 32, hooks.F32
	rows, n := x.size()
	x.step, x.low, x.high = make([]float64, rows*n), make([]float64, rows*n), make([]float64, rows*n)
	for at := 0; at < rows*n; at += 32 {
		most := 0.0
		for i := at; i < at+32; i++ {
			most = max(most, math.Abs(x.values[i]))
		}
		x.block(at, 32, float64(floats.FromF16(floats.F16(float32(most/127)))), -127)
	}
}

// q4 stores it in blocks of 32 codes of four bits with a scale and a least value each, as Q4_1 does.
func (x *tensor) q4() {
	x.format, x.group, x.dtype = "Q4_1", 32, hooks.F32
	rows, n := x.size()
	x.step, x.low, x.high = make([]float64, rows*n), make([]float64, rows*n), make([]float64, rows*n)
	for at := 0; at < rows*n; at += 32 {
		low, high := math.Inf(1), math.Inf(-1)
		for i := at; i < at+32; i++ {
			low, high = min(low, x.values[i]), max(high, x.values[i])
		}
		step := float64(floats.FromF16(floats.F16(float32((high - low) / 15))))
		low = float64(floats.FromF16(floats.F16(float32(low))))
		for i := at; i < at+32; i++ {
			x.step[i], x.low[i], x.high[i] = step, low, low+15*step
			q := 0.0
			if step > 0 {
				q = min(max(math.Round((x.values[i]-low)/step), 0), 15)
			}
			x.values[i] = low + q*step
		}
	}
}

// block stores elements as multiples of a step.
func (x *tensor) block(at, n int, step, lowest float64) {
	for i := at; i < at+n; i++ {
		x.step[i], x.low[i], x.high[i] = step, lowest*step, -lowest*step
		if step > 0 {
			x.values[i] = math.RoundToEven(x.values[i]/step) * step
		} else {
			x.values[i] = 0
		}
	}
}

// rescale gives a block another scale, its codes stay.
func (x *tensor) rescale(at, n int, by float64) {
	for i := at; i < at+n; i++ {
		x.step[i], x.low[i], x.high[i], x.values[i] = x.step[i]*by, x.low[i]*by, x.high[i]*by, x.values[i]*by
	}
}

// quantised has every matrix of gemma3n-tiny whose rows are multiples of 32.
func quantised(c checkpoint, to func(*tensor)) {
	for _, x := range c {
		if len(x.shape) == 2 && x.shape[1]%32 == 0 {
			to(x)
		}
	}
}

func TestCodesAreHeldToTheirFormat(t *testing.T) {
	const q, up = "model.layers.3.self_attn.q_proj.weight", "model.layers.3.mlp.up_proj.weight"
	tests := []struct {
		name   string
		to     func(*tensor)
		plant  func(checkpoint)
		tensor string
		class  weights.Class
		kind   weights.Kind
		row    int
		says   string
	}{
		{name: "Q8_0", to: (*tensor).q8},
		{name: "Q4_1", to: (*tensor).q4},
		{"transposed", (*tensor).q8, func(c checkpoint) { x := c[q]; x.transpose(); x.q8() }, q, weights.Mistake, weights.Transposed, 0, "transposed"},
		{"transposed, four bits", (*tensor).q4, func(c checkpoint) { x := c[q]; x.transpose(); x.q4() }, q, weights.Mistake, weights.Transposed, 0, "transposed"},
		{"interleaved", (*tensor).q8, func(c checkpoint) { x := c[q]; x.reorder(func(i int) int { return i/8*8 + i%2*4 + i%8/2 }); x.q8() }, q, weights.Mistake, weights.Interleaved, 1, "each head of 8"},
		{"gate for up", (*tensor).q8, func(c checkpoint) { c[up] = c["model.layers.3.mlp.gate_proj.weight"] }, up, weights.Mistake, weights.OtherTensor, 0, "gate_proj"},
		{"another layer, four bits", (*tensor).q4, func(c checkpoint) { c[up] = c["model.layers.4.mlp.up_proj.weight"] }, up, weights.Mistake, weights.OtherLayer, 0, "layer 3 has the tensor of layer 4"},
		{"a scale twice as large", (*tensor).q8, func(c checkpoint) { c[up].rescale(17*32, 32, 2) }, up, weights.Mistake, weights.ScaledRows, 17, "row 17: 2 times the original: an exponent is off by one"},
		{"a scale half as large", (*tensor).q4, func(c checkpoint) { c[up].rescale(17*32, 32, 0.5) }, up, weights.Mistake, weights.ScaledRows, 17, "row 17: 0.5 times"},
		{"a second block of a row", (*tensor).q8, func(c checkpoint) { c["model.layers.0.mlp.down_proj.weight"].rescale(5*64+32, 32, 4) }, "model.layers.0.mlp.down_proj.weight", weights.Mistake, weights.ScaledBlock, 5, "row 5, columns 32 to 63: 4 times"},
		{"a block of zeros", (*tensor).q8, func(c checkpoint) { c["model.layers.0.mlp.down_proj.weight"].rescale(5*64+32, 32, 0) }, "model.layers.0.mlp.down_proj.weight", weights.Mistake, weights.ZeroBlock, 5, "row 5, columns 32 to 63: zero"},
		{"a block of other codes", (*tensor).q8, func(c checkpoint) {
			x := c["model.layers.0.mlp.down_proj.weight"]
			for i := 5*64 + 32; i < 6*64; i++ {
				x.values[i] = float64(i*37%255-127) * x.step[i]
			}
		}, "model.layers.0.mlp.down_proj.weight", weights.Different, weights.WrongBlock, 5, "row 5, columns 32 to 63"},
		{"one code", (*tensor).q8, func(c checkpoint) { c[up].values[9*32+3] += 3 * c[up].step[9*32+3] }, up, weights.Different, weights.WrongBlock, 9, "row 9, column 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			port, original := open(t, "gemma3n-tiny")
			if tt.plant != nil && (strings.HasPrefix(tt.name, "transposed") || tt.name == "interleaved") {
				tt.plant(port)
				quantised(checkpoint{up: port[up]}, tt.to)
			} else {
				quantised(port, tt.to)
				if tt.plant != nil {
					tt.plant(port)
				}
			}
			r := compare(t, port, original)
			if tt.plant == nil {
				if !r.Right() || r.Counts.Quantised < 50 {
					t.Errorf("%+v: %+v", r.Counts, r.Findings)
				}
				return
			}
			row := find(t, r, tt.tensor)
			if row.Class != tt.class || row.Kind != tt.kind || !strings.Contains(row.What, tt.says) {
				t.Errorf("got %s %s: %s", row.Class, row.Kind, row.What)
			}
			if row.At == nil || row.At.Row != tt.row {
				t.Errorf("at %+v, want row %d", row.At, tt.row)
			}
			if r.Counts.Wrong != 1 {
				t.Errorf("%d tensors are wrong", r.Counts.Wrong)
			}
		})
	}
}

// TestFormatsThatMoveErrorsAreNotHeldToTheNearestCode: GPTQ and AWQ choose codes for what a layer makes of them.
func TestFormatsThatMoveErrorsAreNotHeldToTheNearestCode(t *testing.T) {
	port, original := open(t, "gemma3n-tiny")
	quantised(port, (*tensor).q8)
	x := port["model.layers.3.mlp.up_proj.weight"]
	x.moves = true
	for i := range x.values {
		if i%5 == 0 {
			x.values[i] += float64(i%2*2-1) * x.step[i]
		}
	}
	if row := find(t, compare(t, port, original), "model.layers.3.mlp.up_proj.weight"); row.Class != weights.Quantised || row.Relative == 0 {
		t.Errorf("%s: %s", row.Class, row.What)
	}
	clear(x.values)
	if row := find(t, compare(t, port, original), "model.layers.3.mlp.up_proj.weight"); row.Class != weights.Mistake || row.Kind != weights.Zero {
		t.Errorf("%s %s: %s", row.Class, row.Kind, row.What)
	}
}

// A factor that the steps of codes hide is no name: what differs is something else.
func TestNoiseIsNoFactor(t *testing.T) {
	const up = "model.layers.3.mlp.up_proj.weight"
	c, original := open(t, "gemma3n-tiny")
	state := uint64(5)
	c[up].each(func(x float64) float64 {
		state = state*6364136223846793005 + 1442695040888963407
		return x * (1 + 0.012*(2*float64(state>>40)/(1<<24)-1))
	})
	quantised(c, (*tensor).q8)
	if row := find(t, compare(t, c, original), up); row.Kind == weights.Scaled {
		t.Errorf("%s: %s", row.Class, row.What)
	}
}

// Codes that were cut off, by a conversion to integers that does not round, have that name, and not that of a factor.
func TestCodesThatWereCutOffAreNamed(t *testing.T) {
	for says, cut := range map[string]func(float64) float64{"codes are rounded toward zero: ": math.Trunc, "codes are rounded down: ": math.Floor} {
		port, original := open(t, "gemma3n-tiny")
		quantised(port, (*tensor).q8)
		name := ""
		for n, x := range port {
			if x.step != nil && (name == "" || len(x.values) > len(port[name].values) || len(x.values) == len(port[name].values) && n < name) {
				name = n
			}
		}
		fresh, _ := open(t, "gemma3n-tiny")
		for i, step := range port[name].step {
			if step > 0 {
				port[name].values[i] = max(cut(fresh[name].values[i]/step)*step, port[name].low[i])
			}
		}
		r := compare(t, port, original)
		row := find(t, r, name)
		if len(r.Findings) == 0 || !strings.Contains(r.Findings[0].Try, "to the nearest code") {
			t.Errorf("findings: %+v", r.Findings)
		}
		if row.Class != weights.Mistake || row.Kind != weights.CutOff || !strings.HasPrefix(row.What, says) {
			t.Errorf("got %s %s: %s; want %s", row.Class, row.Kind, row.What, says)
		}
	}
}
