package diagnose

import "strings"

// descriptionRows are the kinds of descriptions.
func descriptionRows() []Row {
	return []Row{
		{Kind: "described.factor", Words: "{of} is {values} times what it should be[ ({called})][; {like}]"},
		{Kind: "described.factors", Words: "each {by} of {of} has a factor of its own[, the same for each {same}]: {values}[; these are the numbers of {like}]"},
		{Kind: "described.addend", Words: "{values} is added to {of}[ ({called})]"},
		{Kind: "described.addends", Words: "each {by} of {of} has a number of its own added[, the same for each {same}]: {values}[; these are the numbers of {like}]"},
		{Kind: "described.grid", Words: "{of} has values that are whole multiples of {values}: it is kept in few bits"},
		{Kind: "described.grids", Words: "each {by} of {of} has values that are whole multiples of a step of its own: {values}: it is kept in few bits"},
		{Kind: "described.whole", Words: "the operation gives the elements of whole numbers: of {of}, rounded without a scale or with one that is never below 1"},
		{Kind: "described.truncated", Words: "the operation gives the elements of whole numbers: of {of} without what stands behind the point"},
		{Kind: "described.operand", Words: "another {of} gives the elements: what the product reads is wrong, not its weight, nor what is done to the result"},
		{Kind: "described.no-operand", Words: "no operand of the product gives the elements: {of} is wrong, or what is done to the result"},
		{Kind: "described.another", Words: "{like} in place of {of} gives the elements"},
		{Kind: "described.zeros", Words: "{explained} of {elements} wrong elements of {of} are 0"},
	}
}

// String is the description as a sentence.
func (d *Description) String() string {
	return say(d.Kind, func(name string) (words string, has bool) {
		switch name {
		case "by":
			return strings.ReplaceAll(d.By, ", ", " and each "), d.By != ""
		case "same":
			return strings.ReplaceAll(d.Same, ", ", " and "), d.Same != ""
		case "called":
			return d.Called, d.Called != ""
		case "like":
			return d.likeWords(), d.Like != Term{}
		case "values":
			return d.values(), true
		case "explained":
			return short(float64(d.Explained)), true
		case "elements":
			return short(float64(d.Elements)), true
		}
		return d.Of.String(), true
	})
}

// likeWords say what has the numbers.
func (d *Description) likeWords() string {
	switch d.Like.Kind {
	case Constant:
		return "this is " + d.Like.Name + " of the formula, which may be taken twice"
	case ItsReciprocal:
		return "this is the reciprocal of " + d.Like.Name + " of the formula, " + short(d.Like.X) + ", which may be left out"
	}
	return d.Like.String()
}

// values are the numbers in a sentence.
func (d *Description) values() string {
	var all []string
	for _, v := range d.Values {
		all = append(all, short(v))
	}
	text := strings.Join(all, ", ")
	if d.Wrong > len(d.Values) {
		text += ", ..."
	}
	return text
}
