package order_test

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/order"
)

// The list of a configuration has every tensor of a forward pass, in the order in which they are computed.
func Example() {
	config, err := order.ReadConfig([]byte(`{
		"model_type": "qwen3", "vocab_size": 64, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
		"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "max_position_embeddings": 32, "rms_norm_eps": 1e-6
	}`))
	if err != nil {
		panic(err)
	}
	list, err := order.New(config)
	if err != nil {
		panic(err)
	}
	for _, e := range list.Entries {
		if strings.HasPrefix(order.NameOf(e.Name).Module(), "mlp.") {
			fmt.Println(e.Name, e.Shape)
		}
	}
	// Output:
	// layers.0.mlp.gate_proj [1 T 16]
	// layers.0.mlp.act_fn [1 T 16]
	// layers.0.mlp.up_proj [1 T 16]
	// layers.0.mlp.gated [1 T 16]
	// layers.0.mlp.down_proj [1 T 8]
}
