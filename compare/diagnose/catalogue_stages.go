package diagnose

// The stages that stand alone in a search.
var (
	inSteps  = stage{"steps, masks, positions and numbers", (*search).steps}
	inMasks  = stage{"masks", tried(windows, sights)}
	cautious = stage{"counts, activations, numbers and weights that were not loaded", cautiousSteps}
)

// underOthers are the nearest edits in the other arithmetics.
const underOthers = "the nearest mistakes in other arithmetics"

// stages are those of [Find].
func stages() []stage {
	return []stage{
		{"numbers that are not finite", notFinite},
		{"masks of few tokens", fewTokens},
		inSteps,
		{"weights, inputs and the last slots of caches", tried(
			exchanged, changedWeights, weightsElsewhere, packedMatrices, cutMatrices, otherRows, damaged, inputs, lastSlots,
		)},
		{"one scale of all elements", ofOneScale},
		{"orders of elements", tried(orders)},
		{"other channels", tried(otherChannels)},
		{"rows of matrices from elsewhere", tried(rowsElsewhere)},
		{"steps of earlier or later values", tried(shiftedSteps)},
		{"activations by other formulas", tried(activationVariants)},
		{"clipped values", tried(clippings)},
		{"rows of zeros", zeroRows},
		{"dropout", tried(dropout)},
		{"moved rows", movedRows},
		{"vectors that multiply", tried(multipliedVectors)},
		{"logarithms", tried(logarithms)},
		{"penalties of logits", tried(penalised)},
		{"vectors that are added", tried(addedVectors)},
		{"operations of other layers", tried(asOtherLayers)},
		{"fewer bits", tried(inFewerBits, narrowOperands)},
		{"caches in fewer bits", tried(cachedBits)},
		{"steps in fewer bits", tried(narrowSteps)},
		{"operations on what a cache has", tried(appliedToCached)},
		{"operations on some channels", tried(partly)},
		{"numbers solved from the elements", withSolved(solved)},
		{"relations of rows", relatedRows},
		{"functions of rows", tried(byRow)},
		{"tensors made before", tried(chained)},
		{"inputs of one step of several", tried(apartInputs)},
		{"parts in fewer bits", tried(narrowParts)},
		{"tensors that are computed later", tried(laterInputs)},
		{"tensors that are added", tried(addends)},
		{"other values of the formula", tried(operands)},
		{"operations in other places", tried(applied)},
		{"steps and numbers in some tokens", tried(inPart)},
	}
}
