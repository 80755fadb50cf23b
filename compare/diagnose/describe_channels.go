package diagnose

const leastAChannel = 6 // elements that are needed to recognise a channel

// channelsFromElsewhere describes results whose wrong channels are other channels of the right result, for example after a wrong order of the rows of a
// weight.
func channelsFromElsewhere(x *difference) *Description { return channelsAmong(x.results, theResult) }

// channelsAmong describes values whose wrong channels are other channels of the right values.
func channelsAmong(all []observed, of Term) *Description {
	first := &all[0]
	last := len(first.shape) - 1
	if last < 1 || first.axes == "" {
		return nil
	}
	width, rows := first.shape[last], 0
	for n := range all {
		o := &all[n]
		if len(o.shape) != last+1 || o.shape[last] != width {
			return nil
		}
		rows += len(o.want) / width
	}
	if rows < leastAChannel || width < leastWidth || width*width*rows > mostCompared {
		return nil
	}
	d := &Description{Kind: "described.channels", Of: of}
	for c := range width {
		if 2*countRows(all, width, func(o *observed, row int) bool { return wrongElement(o, row+c) }) < rows {
			continue
		}
		d.Elements++
		for k := range width {
			if k != c && countRows(all, width, func(o *observed, row int) bool { return !o.has(row+c, o.value[row+k]) }) == 0 {
				d.Explained++
				d.Cases = oneMore(d.Cases, channelWords(c, k))
				break
			}
		}
	}
	if d.Explained < leastWidth || 2*d.Explained < d.Elements {
		return nil
	}
	return d
}

// countRows counts the rows of all values that pass a test. The test gets the first element of the row.
func countRows(all []observed, width int, is func(o *observed, row int) bool) (n int) {
	for r := range all {
		o := &all[r]
		for row := 0; row < len(o.want); row += width {
			if is(o, row) {
				n++
			}
		}
	}
	return n
}

// has reports whether an element of the wanted value is v, within its error.
func (o *observed) has(i int, v float64) bool {
	d := o.want[i] - v
	return max(d, -d) <= off(o, i)
}
