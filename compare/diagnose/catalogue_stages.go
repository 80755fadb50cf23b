package diagnose

// The stages of searches with a single stage.
var (
	inSteps  = stage{"steps, masks, positions and numbers", inFormula, (*search).steps}
	inMasks  = stage{"masks", inFormula, tried(windows, sights)}
	inSolved = stage{"numbers solved from the elements", inParts, withSolved(solved)}
	inTwo    = stage{"two mistakes at once", inNumbers, twoMistakes}
	cautious = stage{"counts, activations, numbers and weights that were not loaded", inFormula, cautiousSteps}
)

// underOthers is the stage of the nearest edits in the other arithmetics.
const underOthers = "the nearest mistakes in other arithmetics"

// stages are the stages of [Find], by reach. Within a reach the cheapest stage comes first.
func stages() []stage {
	return []stage{
		{"numbers that are not finite", inTensor, notFinite},
		{"masks of few tokens", inTensor, fewTokens},
		inSteps,
		{"weights, inputs and the last slots of caches", inReads, tried(
			exchanged, changedWeights, weightsElsewhere, packedMatrices, cutMatrices, otherRows, damaged, inputs, lastSlots,
		)},
		{"one scale of all elements", inReads, ofOneScale},
		{"orders of elements", inReads, tried(orders)},
		{"other channels", besides, tried(otherChannels)},
		{"rows of matrices from elsewhere", besides, tried(placesOfRows, rowsElsewhere)},
		{"steps of earlier or later values", besides, tried(shiftedSteps)},
		{"activations by other formulas", besides, tried(activationVariants)},
		{"activations with another number", besides, tried(numberedActivations, beyondLimits)},
		{"clipped values", besides, tried(clippings, wholeResults)},
		{"rows of zeros", besides, zeroRows},
		{"dropout", besides, tried(dropout)},
		{"moved rows", besides, movedRows},
		{"vectors that multiply", besides, tried(multipliedVectors)},
		{"logarithms", besides, tried(logarithms)},
		{"penalties of logits", besides, tried(penalised)},
		{"vectors that are added", besides, tried(addedVectors)},
		{"operations of other layers", besides, tried(asOtherLayers)},
		{"fewer bits", inPrecision, tried(inFewerBits, narrowOperands)},
		{"caches in fewer bits", inPrecision, tried(cachedBits)},
		{"steps in fewer bits", inPrecision, tried(narrowSteps)},
		{"operations on what a cache has", inParts, tried(appliedToCached)},
		{"operations on some channels", inParts, tried(partly)},
		inSolved,
		{"relations of rows", inParts, relatedRows},
		{"functions of rows", inParts, tried(byRow)},
		{"tensors made before", inParts, tried(chained)},
		{"inputs of one step of several", inParts, tried(apartInputs, inPlace)},
		{"parts in fewer bits", inParts, tried(narrowParts, storedSteps)},
		{"tensors that are computed later", inParts, tried(laterInputs)},
		{"tensors that are added", inParts, tried(addends)},
		{"other values of the formula", inParts, tried(operands)},
		{"operations in other places", inParts, tried(applied)},
		{"steps and numbers in some tokens", inParts, tried(inPart)},
		{"mistakes in a part of the result", inParts, tried(inBlocks)},
		{"numbers of layers", inNumbers, numbersOfLayers},
		{"what a description proposes", inNumbers, proposed},
		{"errors of low rank, slots from elsewhere, random weights", inNumbers, lastRelations},
	}
}
