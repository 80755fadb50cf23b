package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// machine is the stack machine that a pickle is a program of.
type machine struct {
	in    *stream
	owner Owner
	stack []any
	marks []int // lengths of the stack
	memo  map[int64]any
	built int64
}

var errStack = errors.New("the pickle takes more from its stack than is there")

// errStop ends the program.
var errStop = errors.New("stop")

// run executes the program and returns what it leaves.
func (m *machine) run() (any, error) {
	for {
		start := m.in.at
		op, err := m.in.take(1)
		if err != nil {
			return nil, err
		}
		do := ops[op[0]]
		if do == nil {
			return nil, fmt.Errorf("byte %d of the pickle: unknown instruction 0x%02x", start, op[0])
		}
		switch err := do(m); {
		case err == errStop:
			return m.pop()
		case err != nil:
			return nil, fmt.Errorf("byte %d of the pickle: %w", start, err)
		case m.built > maxBuilt:
			return nil, fmt.Errorf("a pickle bomb: its objects take more than %d MiB", maxBuilt>>20)
		}
	}
}

// What objects take, in bytes.
const (
	slot      = 16 // a value in a stack, a list, a memo
	small     = 32
	container = 64

	// maxStack bounds the values that wait to be put together. A stack that grows takes several times its size; pickles put a thousand
	// elements of a list there at a time, and all of a tuple.
	maxStack = 1 << 20
)

func (m *machine) push(v any, cost int64) error {
	m.built += slot + cost
	if len(m.stack) == maxStack {
		return fmt.Errorf("a pickle bomb: more than %d values wait on its stack", maxStack)
	}
	m.stack = append(m.stack, v)
	return nil
}

// pop takes the last value. What lies below the last mark is not taken.
func (m *machine) pop() (any, error) {
	if len(m.stack) <= m.floor() {
		return nil, errStack
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

func (m *machine) floor() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

// top is the last value.
func (m *machine) top() (any, error) {
	if len(m.stack) <= m.floor() {
		return nil, errStack
	}
	return m.stack[len(m.stack)-1], nil
}

// marked takes all values above the last mark, and the mark.
func (m *machine) marked() (Tuple, error) {
	if len(m.marks) == 0 {
		return nil, errStack
	}
	from := m.floor()
	items := append(Tuple(nil), m.stack[from:]...)
	m.stack, m.marks = m.stack[:from], m.marks[:len(m.marks)-1]
	m.built += int64(len(items)) * slot
	return items, nil
}

// last takes n values.
func (m *machine) last(n int) (Tuple, error) {
	from := len(m.stack) - n
	if from < m.floor() {
		return nil, errStack
	}
	items := append(Tuple(nil), m.stack[from:]...)
	m.stack = m.stack[:from]
	return items, nil
}

// put remembers the last value.
func (m *machine) put(key int64) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	if _, again := m.memo[key]; !again {
		m.built += 3 * slot
	}
	m.memo[key] = v
	return nil
}

func (m *machine) get(key int64) error {
	v, ok := m.memo[key]
	if !ok {
		return fmt.Errorf("nothing was remembered as %d", key)
	}
	return m.push(v, 0)
}

// text pushes a text or bytes of n bytes; long ones stay in the file.
func (m *machine) text(n int64, isText bool) error {
	if n >= blobFrom {
		b := Blob{At: m.in.at, Length: n, Text: isText}
		if err := m.in.skip(n); err != nil {
			return err
		}
		return m.push(b, small)
	}
	p, err := m.in.take(n)
	if err != nil {
		return err
	}
	if isText {
		return m.push(string(p), small+n)
	}
	return m.push(append([]byte(nil), p...), small+n)
}

// sized pushes a text or bytes whose length takes the next width bytes.
func sized(width int64, isText bool) func(*machine) error {
	return counted(width, func(m *machine, n int64) error { return m.text(n, isText) })
}

// long reads a whole number of n bytes in two's complement. A number beyond 64 bits, which no dump needs, becomes a string.
func (m *machine) long(n int64) error {
	p, err := m.in.take(n)
	if err != nil {
		return err
	}
	if n > 8 {
		return m.push(fmt.Sprintf("%d bytes of an integer", n), small)
	}
	var whole [8]byte
	copy(whole[:], p)
	if n > 0 && p[n-1]&0x80 != 0 {
		for i := n; i < 8; i++ {
			whole[i] = 0xff
		}
	}
	return m.push(int64(binary.LittleEndian.Uint64(whole[:])), small)
}

// global pushes what a name stands for.
func (m *machine) global(module, name string) error {
	v, err := m.owner.Global(module, name)
	if err != nil {
		return err
	}
	return m.push(v, small)
}

// call replaces a function and its arguments by what they give.
func (m *machine) call(fn any, args any) error {
	list, ok := args.(Tuple)
	if !ok {
		return errors.New("a call whose arguments are not a tuple")
	}
	v, err := m.owner.Call(fn, list)
	if err != nil {
		return err
	}
	return m.push(v, 2*container)
}

// add puts values into the list that lies last.
func (m *machine) add(items Tuple) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	list, ok := v.(*List)
	if !ok {
		return errors.New("values are appended to something that is not a list")
	}
	m.built += int64(len(items)) * slot
	list.Items = append(list.Items, items...)
	return nil
}

// set puts keys and values into the dictionary that lies last.
func (m *machine) set(items Tuple) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	dict, ok := v.(*Dict)
	if !ok || len(items)%2 != 0 {
		return errors.New("values are put into something that is not a dictionary")
	}
	m.built += int64(len(items)) * slot
	for i := 0; i < len(items); i += 2 {
		dict.Keys, dict.Values = append(dict.Keys, items[i]), append(dict.Values, items[i+1])
	}
	return nil
}

// build gives the object that lies last its state.
func (m *machine) build(state any) error {
	object, err := m.pop()
	if err != nil {
		return err
	}
	if _, plain := object.(*Dict); !plain {
		if object, err = m.owner.Build(object, state); err != nil {
			return err
		}
	} // an attribute of an OrderedDict, such as _metadata, is no item of it
	return m.push(object, 0)
}

// number pushes what a line of digits is: an integer, or 00 and 01, which are booleans.
func (m *machine) number(text string) error {
	switch text {
	case "00", "01":
		return m.push(text == "01", 0)
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "L"), 10, 64)
	if err != nil {
		return notANumber(text)
	}
	return m.push(n, small)
}
