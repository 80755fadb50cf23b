package tokenizer

import "unicode/utf8"

// A pair is two neighbouring ids.
type pair struct{ left, right int32 }

// A merge says what a pair becomes, and when: the lower its rank, the earlier.
type merge struct{ rank, id int32 }

// A bpe is the model of tokenizer.json: it starts from the characters of a word, or from its bytes, and
// joins neighbours, the pair of lowest rank first and of equal ranks the leftmost, until no listed pair
// is left. What a word is, the pre-tokenizer says; to Gemma it is the whole text.
type bpe struct {
	vocab     map[string]int32 // by the text, at byte level by the bytes that a piece spells
	merges    map[pair]merge
	byteLevel bool        // a word starts as bytes
	bytes     *[256]int32 // ids of the bytes: all there is at byte level, else the fallback or nil
	unknown   int32       // used only where bytes is nil
	fuse      bool        // a run of unknown characters is one token
	whole     bool        // a word that is a piece is that piece, whatever the merges make of it
}

// A symbol is a piece of the text on its way to being a token, in a doubly linked list.
type symbol struct {
	id         int32 // dead once it was merged into the symbol on its left
	prev, next int   // -1: none
}

// Numbers that are no ids.
const (
	dead   = -1 // of a symbol that was merged
	noByte = -2 // of a byte that the vocabulary has no piece for; no pair has it
)

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

// encode appends the ids of a word, which is normalised and holds no added token, to ids; noByte stands for a byte without a piece. It takes time
// in O(n log n) of the characters: every merge removes a symbol and queues at most two candidates.
func (b *bpe) encode(word string, ids []int, work *workspace) []int {
	if b.whole {
		if id, ok := b.vocab[word]; ok {
			return append(ids, int(id))
		}
	}
	work.symbols = work.symbols[:0]
	if b.byteLevel {
		for _, c := range []byte(word) {
			work.add(b.bytes[c])
		}
	} else {
		b.split(word, work)
	}
	b.join(work)
	for _, s := range work.symbols {
		if s.id != dead {
			ids = append(ids, int(s.id))
		}
	}
	return ids
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

// split makes the characters of text symbols: a piece where the vocabulary has the character, else its
// bytes, else the unknown token.
func (b *bpe) split(text string, work *workspace) {
	afterUnknown := false
	for i, r := range text {
		char := text[i : i+utf8.RuneLen(r)]
		id, known := b.vocab[char]
		switch {
		case known:
			work.add(id)
		case b.bytes != nil:
			for _, c := range []byte(char) {
				work.add(b.bytes[c])
			}
		case !b.fuse || !afterUnknown:
			work.add(b.unknown)
		}
		afterUnknown = !known
	}
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
