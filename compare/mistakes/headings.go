package mistakes

// NotEdits are the headings of docs/mistakes.md that are no edit of an operation, and why.
var NotEdits = map[string]string{
	"token-ids":                      "ids are compared before anything is computed",
	"padding":                        "a trace has one sequence without padding",
	"hooks-at-another-point":         "nothing is computed wrongly",
	"fully-masked-row":               "in one sequence without padding every row has a key",
	"narrow-arithmetic":              "it is an arithmetic, and is looked for as one",
	"not-finite":                     "a value that is not finite is seen wherever it is compared",
	"float16-overflow":               "it needs values that are larger than 65504",
	"other-roundings":                "it is no mistake",
	"shifted-positions":              "it is no mistake",
	"same-order-of-queries-and-keys": "it is no mistake",
	"scale-moved-to-the-queries":     "it is no mistake",
	"rescaled-stream":                "it is no mistake",
	"ties":                           "it is no mistake",
}
