package measure

import (
	"fmt"

	"github.com/tracediff/tracediff/order"
)

// axisNames are the roles of axes in words.
var axisNames = map[rune]string{
	order.AxisStream: "stream", order.AxisBatch: "batch", order.AxisToken: "token", order.AxisKey: "key",
	order.AxisHead: "head", order.AxisLayer: "layer", order.AxisChannel: "channel", order.AxisVocab: "vocabulary",
}

// AxisName is the role of axis i in words, by the letters of an entry's axes; "axis 2" where they do not say.
func AxisName(axes string, i int) string {
	if i < len(axes) {
		if name, ok := axisNames[rune(axes[i])]; ok {
			return name
		}
	}
	return fmt.Sprintf("axis %d", i)
}
