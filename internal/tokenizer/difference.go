package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A Difference says where two tokenizers give a text other ids.
type Difference struct {
	Texts, Differ int
	Text          string // the shortest of those that differ
	Ours, Other   []int  // its ids
	Piece         int    // the first id with different pieces; -1: there is no such id
	Sizes         [2]int // how many ids they have
}

// compared is how many texts [Tokenizer.Compare] draws.
const compared = 2000

// Compare encodes drawn texts, the same in each call, by both tokenizers: words of several scripts, numbers, white space, signs, emoji and
// added tokens, put together at random. An error of either is that of a text.
func (t *Tokenizer) Compare(other *Tokenizer) (Difference, error) {
	d := Difference{Piece: -1, Sizes: [2]int{len(t.pieces), len(other.pieces)}}
	for id := range min(len(t.pieces), len(other.pieces)) {
		// Converters write a token of spaces as it is meant.
		if strings.ReplaceAll(t.pieces[id], spaceMark, " ") != strings.ReplaceAll(other.pieces[id], spaceMark, " ") {
			d.Piece = id
			break
		}
	}
	for _, text := range drawn(t) {
		ours, err := t.Encode(text)
		if err != nil {
			return d, err
		}
		theirs, err := other.Encode(text)
		if err != nil {
			return d, err
		}
		if d.Texts++; slices.Equal(ours, theirs) {
			continue
		}
		if d.Differ++; d.Text == "" || len(text) < len(d.Text) {
			d.Text, d.Ours, d.Other = text, ours, theirs
		}
	}
	return d, nil
}

// drawn are the texts of Compare.
func drawn(t *Tokenizer) []string {
	words := strings.Split("the|lighthouse|Hello|WORLD|don't|I'LL|naïve|Straße|e\u0301|Маяк|φάρος|مرحبا|नमस्ते|สวัสดี|灯台|안녕|ﬁne|camelCase|x_y|", "|")
	numbers := strings.Split("7|42|1234|3.14|²|½|x²|10½|٣٤|४२|Ⅷ|①|１２", "|")
	signs := strings.Split("!|?!|...|--|->|'|\"|()|{}|/|#|$|€|_|👍🏽|👩\u200d👧|❤\ufe0f|\u200b|\x00|\ue000", "|")
	spaces := []string{" ", " ", " ", "  ", "    ", "\n", "\n\n", " \n", "\t", "\r\n", "\u00a0", "\u3000", ""}
	var added []string
	for content := range t.added {
		added = append(added, content)
	}
	slices.Sort(added)
	added = append(added, "<s>", "<|")
	rng := rand.New(rand.NewPCG(38, 2007))
	texts := make([]string, compared)
	for i := range texts {
		var text strings.Builder
		for range 1 + rng.IntN(7) {
			list := words
			switch rng.IntN(9) {
			case 0:
				list = numbers
			case 1:
				list = []string{strconv.Itoa(rng.IntN(100)), strconv.Itoa(11 * rng.IntN(1000)), strconv.Itoa(rng.IntN(1e9))}
			case 2:
				list = signs
			case 3:
				list = added
			}
			text.WriteString(list[rng.IntN(len(list))])
			text.WriteString(spaces[rng.IntN(len(spaces))])
		}
		texts[i] = text.String()
	}
	return texts
}
