package amount

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are those of [ParseBytes], the longest first.
var units = []struct {
	name string
	size float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"B", 1}, {"", 1}}

// ParseBytes reads a count of bytes as [Bytes] writes it, the blank left out or not: "512MiB", "1.5 GiB", "1073741824".
func ParseBytes(text string) (int64, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if n *= u.size; err != nil || !(n >= 0) || n > math.MaxInt64/2 {
			break
		}
		return int64(n), nil
	}
	return 0, fmt.Errorf("%q is not a size such as 512MiB or 2GiB", text)
}
