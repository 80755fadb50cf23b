package ordertest_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order/ordertest"
)

// Each family that package order describes is drawn, and has its class of transformers: a family that one of the lists lacks would be tested
// nowhere, or would have no reference.
func TestEveryFamilyIsDrawn(t *testing.T) {
	listed := func(path, expression string) (all []string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(string(data), -1) {
			all = append(all, m[1])
		}
		return all
	}
	described := listed("../families.go", `(?m)^\t"(\w+)": +\{read: `)
	classes := listed("../../hooks/python/tracediff/model.py", `(?m)^    "(\w+)": "\w+For\w+",`)
	drawn := slices.Concat(ordertest.Gemma, ordertest.Plain)
	if len(described) < len(drawn) {
		t.Fatalf("families.go describes %v", described)
	}
	for _, family := range described {
		outer := family == "gemma3" || family == "gemma3n" // of multimodal files: its text model has a type of its own
		if !outer && !slices.Contains(drawn, family) {
			t.Errorf("%s is in neither of the lists Gemma and Plain", family)
		}
		if !slices.Contains(classes, family) {
			t.Errorf("CLASSES of hooks/python/tracediff/model.py lacks %s", family)
		}
	}
}
