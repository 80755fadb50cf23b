package measure

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Each number of a comparison stands in docs/verdict.md under its name in the JSON.
func TestNumbersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdict.md")
	if err != nil {
		t.Fatal(err)
	}
	of := reflect.TypeFor[Metrics]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "-" && !strings.Contains(string(page), "`"+name) {
			t.Errorf("docs/verdict.md does not say what %s is", name)
		}
	}
}
