package order_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order"
)

// A setting that no order has, and a family that no order describes, are for the recorder. A setting that makes no sense is an error.
func TestUndescribed(t *testing.T) {
	const llama = `{"model_type": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "rope_parameters": {"rope_type": "ROPE", "rope_theta": THETA, "factor": 8}}`
	for _, c := range []struct {
		rope, theta, family string
		want                bool
	}{{"yarn", "10000", "llama", true}, {"linear", "10000", "mistral", true}, {"linear", "-1", "llama", false}} {
		_, err := order.ReadConfig([]byte(strings.NewReplacer("ROPE", c.rope, "THETA", c.theta, "llama", c.family).Replace(llama)))
		if err == nil || order.Undescribed(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
