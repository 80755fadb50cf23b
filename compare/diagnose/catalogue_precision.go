package diagnose

// precisionRows are mistakes in the types that are computed in or stored.
var precisionRows = []Row{
	{Kind: "precision.narrow", Words: "it is computed in {by}"},
	{Kind: "precision.narrow-operands", Words: "it is computed in {by}, with a result in float32"},
	{Kind: "precision.each-step", Words: "it is computed in {dtype}, each step rounded"},
	{Kind: "precision.up-to", Words: "it is computed in {dtype} up to {of}"},
	{Kind: "precision.from-step-on", Words: "it is computed in {dtype} from {of} on"},
	{Kind: "precision.one-step", Words: "{of} is computed in {dtype}"},
	{Kind: "precision.operation-to", Words: "the operation up to {of} is computed in {dtype}"},
	{Kind: "precision.products", Words: "its sums of products are computed in {dtype}"},
	{Kind: "tensor.rounded-dtype", Words: "{of} is rounded to {dtype}"},
	{Kind: "tensor.rounded", Words: "{of} is rounded to {storage}"},
	{Kind: "dropout.left-on", Words: "some elements are 0, and the others are divided by {by}: dropout is left on"},
}
