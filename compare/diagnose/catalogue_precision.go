package diagnose

import "github.com/tracediff/tracediff/order/program/edit"

// precisionRows are mistakes in the types of a computation or of stored values.
func precisionRows() []Row {
	return []Row{
		{Kind: "precision.narrow", Words: "it is computed in {by}", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: ofNarrowOperands, Class: edit.Inserted, After: []Kind{"tensor.rounded-dtype"}, Alike: computedAs},
		{Kind: "precision.narrow-operands", Words: "it is computed in {by}, with a float32 result", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: ofNarrowOperands, Class: edit.Inserted, After: []Kind{"tensor.rounded-dtype"}, Alike: computedAs},
		{Kind: "precision.each-step", Words: "it is computed in {dtype}, with each step rounded", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: computedUpTo, Class: edit.Inserted, After: []Kind{"precision.narrow"}, Alike: computedAs},
		{Kind: "precision.up-to", Words: "it is computed in {dtype} up to {of}", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: computedUpTo, Class: edit.Inserted, Alike: computedAs},
		{Kind: "precision.from-step-on", Words: "it is computed in {dtype} from {of} on", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: computedPart, Class: edit.Inserted, Weak: true, Alike: computedAs},
		{Kind: "precision.one-step", Words: "{of} is computed in {dtype}", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: computedPart, Class: edit.Inserted, Weak: true, Alike: computedAs},
		{Kind: "precision.step-stored", Words: "the result of {of} is stored in {dtype}", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: storedStep, Class: edit.Inserted, Weak: true},
		{Kind: "precision.operand-stored", Words: "{by} reads the result of {of} in {dtype}, and other steps read it as it is", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: storedStep, Class: edit.Inserted, After: []Kind{"precision.step-stored"}, Weak: true},
		{Kind: "precision.operation-to", Words: "the operation up to {of} is computed in {dtype}", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: computedPart, Class: edit.Inserted, Weak: true, Alike: computedAs},
		{Kind: "precision.products", Words: "its sums of products are accumulated in {dtype}", Pages: []Page{{Anchor: "narrow-arithmetic"}}, Apply: ofNarrowProducts, Class: edit.Inserted},
		{Kind: "tensor.rounded-dtype", Words: "{of} is rounded to {dtype}", Pages: []Page{{Anchor: "narrow-arithmetic", If: of(TheResult)}, {Anchor: "rounded-embedding-scale", Roles: embeddings}}, Apply: storedInFewerBits, Class: edit.Inserted},
		{Kind: "tensor.rounded", Words: "{of} is quantised to {coding}", Pages: []Page{{Anchor: "quantised-cache", Roles: caches}, {Anchor: "quantised-weight", If: ints}}, Apply: storedInFewerBits, Class: edit.Inserted},
		{Kind: "dropout.left-on", Words: "dropout is left on: some elements are 0, the others are divided by {by}", Apply: droppedOut, Class: edit.Inserted, Solved: fitted},
	}
}

// fitted counts the number of a mistake that was solved, and the elements that were picked.
func fitted(m Mistake) int { return 1 + m.Picked }
