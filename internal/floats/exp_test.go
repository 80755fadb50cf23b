package floats_test

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/internal/floats"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// argument draws what exponentials are taken of: usual numbers, every finite one, and those near the ends of the range.
func argument() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64Range(-40, 40), rapid.Float64Range(-750, 711), rapid.Float64Range(-746, -700), rapid.Float64(),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 709.4, 709.7, 709.7827128933841, -745.1332191019411, -745.1332191019412, math.SmallestNonzeroFloat64}),
	)
}

// largest is where 2 to the nearest integer of x/ln 2 is no float64 any more.
const largest = 1023.5 * math.Ln2

func sameBits(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// Exp is what the library gives on a processor that multiplies and adds at once, to the bit, and next to it everywhere.
func TestExpIsTheLibrarys(t *testing.T) {
	fused := runtime.GOARCH == "amd64" && cpu.X86.HasFMA && !strings.Contains(os.Getenv("GODEBUG"), "cpu.fma=off")
	rapid.Check(t, func(t *rapid.T) {
		x := argument().Draw(t, "x")
		got, want := floats.Exp(x), math.Exp(x)
		if x > largest && x < 709.782712893384 { // which amd64's library calls infinite
			want = math.Exp(x-1) * math.E
		} else if fused && !sameBits(got, want) {
			t.Fatalf("exp(%x) is %x, the library says %x", x, got, want)
		}
		if near := math.Abs(got-want) <= max(0x1p-48*want, 0x1p-1073); !near && !sameBits(got, want) {
			t.Fatalf("exp(%x) is %x, far from %x", x, got, want)
		}
		if got, want := floats.Tanh(x), math.Tanh(x); fused && !sameBits(got, want) || math.Abs(got-want) > 0x1p-52 {
			t.Fatalf("tanh(%x) is %x, the library says %x", x, got, want)
		}
	})
}

// The bits are these on every machine. Those that come last are where a processor without fused instructions gives others by the library.
func TestExpHasTheseBits(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{0, 1},
		{1, 0x1.5bf0a8b145769p+01},
		{709.7, 0x1.d75ae7a50ee14p+1023},
		{-3.3436853885650635, 0x1.213b4e11e761dp-05},
		{-11.408730506896973, 0x1.7464898f8166bp-17},
		{3.018460750579834, 0x1.475b3cc165921p+04},
		{13.312628746032715, 0x1.274e289826853p+19},
	} {
		if got := floats.Exp(c.x); !sameBits(got, c.want) {
			t.Errorf("exp(%v) is %x, want %x", c.x, got, c.want)
		}
	}
}

// The same holds with the processor's fused instructions switched off.
func TestExpWithoutFusedInstructions(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 has a switch for them")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^(TestExpHasTheseBits|TestExpIsTheLibrarys)$")
	cmd.Env = append(os.Environ(), "GODEBUG=cpu.fma=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
