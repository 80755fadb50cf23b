package tokenizer

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// A pair is two neighbouring ids.
type pair struct{ left, right int32 }

// A merge says what a pair becomes, and when: the lower its rank, the earlier.
type merge struct{ rank, id int32 }

// A bpe is the model of tokenizer.json: it starts from the characters of a word, and joins neighbours, the pair of lowest rank first and of
// equal ranks the leftmost, until no listed pair is left. What a word is, the pre-tokenizer says; to Gemma it is the whole text. At byte
// level the pre-tokenizer has spelled its bytes as characters.
type bpe struct {
	vocab       map[string]int32
	chars       map[rune]int32 // the pieces of one character
	merges      map[pair]merge
	bytes       *[256]int32 // the ids of the bytes, for characters without a piece; dropped: the byte has no id; nil: no byte_fallback
	unknown     int32       // what characters without a piece and without bytes become, dropped for nothing
	unknownName string
	fuse        bool // a run of unknown characters is one token
	whole       bool // a word that is in the vocabulary is one token, and merges are not used
}

// What stands where there is no id.
const (
	dead    = -1 // the symbol was merged into the one on its left
	dropped = -2 // the character leaves no trace
	missing = -3 // the unknown token is not in the vocabulary
)

// A symbol is a piece of the text on its way to being a token, in a doubly linked list.
type symbol struct {
	id         int32 // dead once it was merged into the symbol on its left
	prev, next int   // -1: none
}

// A workspace is what the encoding of a word leaves for that of the next. The zero value is ready.
type workspace struct {
	symbols []symbol
	queue   candidates
}

// A candidate is a merge that was possible when it was queued: of the symbol at left with the next.
type candidate struct {
	merge
	left int
}

// encode appends the ids of a word, which is normalised and holds no added token, to ids. It takes time
// in O(n log n) of the characters: every merge removes a symbol and queues at most two candidates.
func (b *bpe) encode(word string, ids []int, work *workspace) ([]int, error) {
	if b.whole {
		if id, ok := b.vocab[word]; ok {
			return append(ids, int(id)), nil
		}
	}
	work.symbols = work.symbols[:0]
	if err := b.split(word, work); err != nil {
		return ids, err
	}
	b.join(work)
	for _, s := range work.symbols {
		if s.id != dead {
			ids = append(ids, int(s.id))
		}
	}
	return ids, nil
}

// add appends a symbol.
func (w *workspace) add(id int32) {
	n := len(w.symbols)
	if n > 0 {
		w.symbols[n-1].next = n
	}
	w.symbols = append(w.symbols, symbol{id: id, prev: n - 1, next: -1})
}

// join merges the symbols until no listed pair is left.
func (b *bpe) join(work *workspace) {
	symbols, queue := work.symbols, work.queue[:0]
	suggest := func(left int) {
		if left < 0 || symbols[left].next < 0 {
			return
		}
		if m, ok := b.merges[pair{symbols[left].id, symbols[symbols[left].next].id}]; ok {
			queue.push(candidate{m, left})
		}
	}
	for i := range symbols {
		suggest(i)
	}
	for len(queue) > 0 {
		top := queue.pop()
		left := &symbols[top.left]
		if left.next < 0 {
			continue
		}
		right := &symbols[left.next]
		// Where one of the two has grown since, they make a longer piece or none; no pair has a dead id.
		if m, ok := b.merges[pair{left.id, right.id}]; !ok || m.id != top.id {
			continue
		}
		left.id, left.next, right.id = top.id, right.next, dead
		if left.next >= 0 {
			symbols[left.next].prev = top.left
		}
		suggest(left.prev)
		suggest(top.left)
	}
	work.queue = queue
}

// split makes the characters of word symbols: a piece where the vocabulary has the character, else its bytes where it has all of them, else
// the unknown token. An unknown token waits for the next piece, and the bytes of a character go past it, as in `tokenizers`.
func (b *bpe) split(word string, work *workspace) error {
	waits := false
	for i, r := range word {
		char := word[i : i+utf8.RuneLen(r)]
		if id, known := b.chars[r]; known {
			if waits {
				work.add(b.unknown)
				waits = false
			}
			work.add(id)
			continue
		}
		if b.bytes != nil && !slices.ContainsFunc([]byte(char), func(c byte) bool { return b.bytes[c] == dropped }) {
			for _, c := range []byte(char) {
				work.add(b.bytes[c])
			}
			continue
		}
		switch {
		case b.unknown == dropped:
			continue
		case b.unknown == missing:
			return fmt.Errorf("model.unk_token: %q is not in the vocabulary, and %q is unknown: transformers fails on this text too", b.unknownName, char)
		case waits && !b.fuse:
			work.add(b.unknown)
		}
		waits = true
	}
	if waits {
		work.add(b.unknown)
	}
	return nil
}

// candidates is a binary heap with the best candidate first. The standard library's heap would box
// every candidate in an interface, an allocation each.
type candidates []candidate

// before reports whether a is to be merged before b.
func (a candidate) before(b candidate) bool {
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return a.left < b.left
}

func (q *candidates) push(c candidate) {
	heap := append(*q, c)
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !heap[i].before(heap[parent]) {
			break
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
	*q = heap
}

func (q *candidates) pop() candidate {
	heap := *q
	top, last := heap[0], len(heap)-1
	heap[0] = heap[last]
	heap = heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && heap[child+1].before(heap[child]) {
			child++
		}
		if !heap[child].before(heap[i]) {
			break
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
	*q = heap
	return top
}
