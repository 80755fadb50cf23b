package arithmetic_test

import (
	"testing"

	"github.com/tracediff/tracediff/internal/testengine"
)

func TestMain(m *testing.M) { testengine.Main(m) }
