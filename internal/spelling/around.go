package spelling

import (
	"regexp"
	"strings"
)

// Words before the number of a part of a run, as alternatives of a regular expression.
const (
	StageWords = "stage|pp|pipe|pipeline"
	RankWords  = "(?:tp|mp|ep|pp)?_?rank|tp|shard|device|gpu|worker|" + StageWords                 // of a rank or a stage
	PartWords  = "(?:dp|cp|sp)_?rank|mp|ep|dp|cp|sp|cuda|experts?|" + RankWords + "|" + LayerWords // of a rank, a stage, a layer or an expert
)

// Words before the number of a pass, as alternatives of a regular expression: in the name of a tensor, and as the key of an element in a list
// of passes.
const (
	PassWords    = "step|iter|iteration|round|decode|pass"
	ElementWords = "pass|passes|step|steps|iter|iteration|iterations"
)

// Fused matches the part of an engine's tensor name that stands for several roles in one tensor. A match does not tell the roles.
var Fused = regexp.MustCompile(`(?i)(qkv|wqkv|c_attn|query_key_value|in_proj|kv_proj|kv_einsum|gate_?up|gating_einsum|w13|fc1)`)

// Words for an embedding in names of tensors, as alternatives of a regular expression.
const (
	EmbeddingWords  = "embed(s|ding|dings)?|embds?|emb"
	EmbeddingTables = EmbeddingWords + "|wte|wpe" // the embedding, and the tables of GPT-2
)

var (
	nodeTail   = regexp.MustCompile(`/(MatMul|Gemm|Add|Mul|Sub|Div|Sqrt|Softmax|Transpose|Reshape|Gather|Cast|Concat|RMSNormalization|SimplifiedLayerNormalization|LayerNormalization)(_[0-9]+)?_output_0$`)
	modulePart = regexp.MustCompile(`^(Module\.|non_intrusive__)`)
	callTail   = regexp.MustCompile(`(\.[A-Z][A-Za-z0-9]*\.forward\.[0-9]+)?(\.output|_output|_out|\.out|:0|\[0\])?(\.0)?$`)
)

// ModuleOf is the name of a module, with dots, for the name of a node of its graph, such as "/model/norm/Mul_1_output_0".
func ModuleOf(node string) string {
	module := nodeTail.ReplaceAllString(strings.TrimPrefix(node, "/"), "")
	return strings.ReplaceAll(modulePart.ReplaceAllString(module, ""), "/", ".")
}

// WithoutCall is a name without what recorders of calls put after the name of a module, such as ".output" and ".forward.0".
func WithoutCall(name string) string { return callTail.ReplaceAllString(name, "") }
