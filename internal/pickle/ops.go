package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// ops are the instructions of protocols 0 to 5, by their byte. The extension registry and buffers outside the pickle are not
// among them: a file does not have them.
var ops = instructions()

type table = [256]func(*machine) error

func value(v any, cost int64) func(*machine) error {
	return func(m *machine) error { return m.push(v, cost) }
}

// counted runs do with a number of width bytes.
func counted(width int64, do func(m *machine, n int64) error) func(*machine) error {
	return func(m *machine) error {
		n, err := m.in.uint(width)
		if err != nil {
			return err
		}
		if n > math.MaxInt64 {
			return fmt.Errorf("a length of %d", n)
		}
		return do(m, int64(n))
	}
}

// lined runs do with the next line.
func lined(do func(m *machine, text string) error) func(*machine) error {
	return func(m *machine) error {
		text, err := m.in.line()
		if err != nil {
			return err
		}
		return do(m, text)
	}
}

// numbered runs do with the number on the next line.
func numbered(do func(m *machine, n int64) error) func(*machine) error {
	return lined(func(m *machine, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return notANumber(text)
		}
		return do(m, n)
	})
}

func notANumber(text string) error { return fmt.Errorf("not a number: %.40q", text) }

// few runs do with the last n values.
func few(n int, do func(m *machine, items Tuple) error) func(*machine) error {
	return func(m *machine) error {
		items, err := m.last(n)
		if err != nil {
			return err
		}
		return do(m, items)
	}
}

// tuple replaces the last n values by a tuple of them.
func tuple(n int) func(*machine) error {
	return few(n, func(m *machine, items Tuple) error { return m.push(items, container+int64(n)*slot) })
}

func (m *machine) pushInt(n int64) error { return m.push(n, small) }

func instructions() (ops table) {
	numbers(&ops)
	containers(&ops)
	objects(&ops)
	return ops
}

func numbers(ops *table) {
	ops['\x80'] = counted(1, func(m *machine, n int64) error {
		if n > 5 {
			return fmt.Errorf("protocol %d", n)
		}
		return nil
	})
	ops['\x95'] = counted(8, func(*machine, int64) error { return nil }) // a frame is for readers of streams
	ops['.'] = func(*machine) error { return errStop }
	ops['N'], ops['\x88'], ops['\x89'] = value(nil, 0), value(true, 0), value(false, 0)
	ops['I'] = lined((*machine).number)
	ops['L'] = ops['I']
	ops['J'] = counted(4, func(m *machine, n int64) error { return m.pushInt(int64(int32(n))) })
	ops['K'], ops['M'] = counted(1, (*machine).pushInt), counted(2, (*machine).pushInt)
	ops['\x8a'], ops['\x8b'] = counted(1, (*machine).long), counted(4, (*machine).long)
	ops['F'] = lined(func(m *machine, text string) error {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return notANumber(text)
		}
		return m.push(x, small)
	})
	ops['G'] = func(m *machine) error { // big-endian, the only number that is
		p, err := m.in.take(8)
		if err != nil {
			return err
		}
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(p)), small)
	}
	ops['T'], ops['U'] = sized(4, false), sized(1, false)
	ops['B'], ops['C'], ops['\x8e'], ops['\x96'] = sized(4, false), sized(1, false), sized(8, false), sized(8, false)
	ops['X'], ops['\x8c'], ops['\x8d'] = sized(4, true), sized(1, true), sized(8, true)
	ops['V'] = lined(func(m *machine, text string) error { return m.push(text, small+int64(len(text))) })
	ops['S'] = lined(func(m *machine, text string) error {
		if len(text) < 2 || text[0] != text[len(text)-1] {
			return errors.New("a string without quotes")
		}
		return m.push(text[1:len(text)-1], small+int64(len(text)))
	})
}

func containers(ops *table) {
	ops['('] = func(m *machine) error {
		m.built += slot
		m.marks = append(m.marks, len(m.stack))
		return nil
	}
	ops['0'] = func(m *machine) error {
		if n := len(m.marks); n > 0 && m.marks[n-1] == len(m.stack) {
			m.marks = m.marks[:n-1]
			return nil
		}
		_, err := m.pop()
		return err
	}
	ops['1'] = func(m *machine) error { _, err := m.marked(); return err }
	ops['2'] = func(m *machine) error {
		v, err := m.top()
		if err != nil {
			return err
		}
		return m.push(v, 0)
	}
	ops[']'] = func(m *machine) error { return m.push(&List{}, container) }
	ops['\x8f'] = ops[']']
	ops['}'] = func(m *machine) error { return m.push(&Dict{}, container) }
	ops[')'], ops['\x85'], ops['\x86'], ops['\x87'] = tuple(0), tuple(1), tuple(2), tuple(3)
	marked := func(do func(m *machine, items Tuple) error) func(*machine) error {
		return func(m *machine) error {
			items, err := m.marked()
			if err != nil {
				return err
			}
			return do(m, items)
		}
	}
	ops['t'] = marked(func(m *machine, items Tuple) error { return m.push(items, container) })
	ops['l'] = marked(func(m *machine, items Tuple) error { return m.push(&List{items}, container) })
	ops['\x91'] = ops['l']
	ops['d'] = marked(func(m *machine, items Tuple) error {
		if err := m.push(&Dict{}, container); err != nil {
			return err
		}
		return m.set(items)
	})
	ops['e'], ops['\x90'], ops['u'] = marked((*machine).add), marked((*machine).add), marked((*machine).set)
	ops['a'], ops['s'] = few(1, (*machine).add), few(2, (*machine).set)
	ops['q'], ops['r'], ops['p'] = counted(1, (*machine).put), counted(4, (*machine).put), numbered((*machine).put)
	ops['h'], ops['j'], ops['g'] = counted(1, (*machine).get), counted(4, (*machine).get), numbered((*machine).get)
	ops['\x94'] = func(m *machine) error { return m.put(int64(len(m.memo))) }
	ops['b'] = few(1, func(m *machine, items Tuple) error { return m.build(items[0]) })
	ops['R'] = few(2, func(m *machine, items Tuple) error { return m.call(items[0], items[1]) })
	ops['\x81'] = ops['R'] // cls.__new__(cls, *args)
	ops['\x92'] = few(3, func(m *machine, items Tuple) error {
		if named, ok := items[2].(*Dict); !ok || len(named.Keys) > 0 {
			return errors.New("an object made with named arguments")
		}
		return m.call(items[0], items[1])
	})
}

func objects(ops *table) {
	named := func(do func(m *machine, module, name string) error) func(*machine) error {
		return lined(func(m *machine, module string) error {
			return lined(func(m *machine, name string) error { return do(m, module, name) })(m)
		})
	}
	ops['c'] = named((*machine).global)
	ops['\x93'] = few(2, func(m *machine, items Tuple) error {
		module, isText := items[0].(string)
		name, isText2 := items[1].(string)
		if !isText || !isText2 {
			return errors.New("a global whose name is not text")
		}
		return m.global(module, name)
	})
	ops['i'] = named(func(m *machine, module, name string) error { // the oldest way to make an object
		args, err := m.marked()
		if err != nil {
			return err
		}
		fn, err := m.owner.Global(module, name)
		if err != nil {
			return err
		}
		return m.call(fn, args)
	})
	ops['P'] = lined(func(m *machine, id string) error { return m.persistent(id) })
	ops['Q'] = func(m *machine) error {
		id, err := m.pop()
		if err != nil {
			return err
		}
		return m.persistent(id)
	}
}

func (m *machine) persistent(id any) error {
	v, err := m.owner.Persistent(id)
	if err != nil {
		return err
	}
	return m.push(v, container)
}
