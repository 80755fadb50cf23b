package torch

import (
	"errors"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/pickle"
)

// A function is a name that a pickle may call, with its result for the arguments.
type function func(o *owner, args pickle.Tuple) (any, error)

// constant is a name that a pickle may mention and not call.
type constant string

// element is a dtype, or a storage class, which stands for one.
type element struct {
	d       hooks.DType
	unknown string // the name where the dtype is not one of ours
}

func (e element) size() int64 { return int64(e.d.Size()) }

// storages are torch's storage classes, by name. TypedStorage's own name never stands in a file.
var storages = map[string]element{
	"DoubleStorage": {d: hooks.F64}, "FloatStorage": {d: hooks.F32}, "HalfStorage": {d: hooks.F16}, "BFloat16Storage": {d: hooks.BF16},
	"LongStorage": {d: hooks.I64}, "IntStorage": {d: hooks.I32}, "ShortStorage": {d: hooks.I16}, "CharStorage": {d: hooks.I8},
	"ByteStorage": {d: hooks.U8}, "BoolStorage": {d: hooks.Bool}, "UntypedStorage": {d: hooks.U8},
	"ComplexFloatStorage": {unknown: "complex64"}, "ComplexDoubleStorage": {unknown: "complex128"},
	"QInt8Storage": {unknown: "qint8"}, "QInt32Storage": {unknown: "qint32"}, "QUInt8Storage": {unknown: "quint8"},
}

// dtypes are torch's dtypes with other names than ours, or without a reader.
var dtypes = map[string]string{
	"double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
	"complex64": "", "complex128": "", "chalf": "", "complex32": "", "cfloat": "", "cdouble": "",
	"float8_e4m3fnuz": "", "float8_e5m2fnuz": "", "float8_e8m0fnu": "", "float4_e2m1fn_x2": "",
}

// dtype is the dtype of a name of the module torch.
func dtype(name string) (element, bool) {
	if other, listed := dtypes[name]; listed && other == "" {
		return element{unknown: name}, true
	} else if listed {
		name = other
	}
	d, err := hooks.ParseDType(name)
	return element{d: d}, err == nil && d.String() == name
}

// functions are all names that a pickle may call, apart from dtypes and storages.
var functions = map[string]function{
	"torch._utils._rebuild_tensor":               rebuild,
	"torch._utils._rebuild_tensor_v2":            rebuild,
	"torch._utils._rebuild_tensor_v3":            rebuildTyped,
	"torch._utils._rebuild_parameter":            first,
	"torch._utils._rebuild_parameter_with_state": first,
	"torch._tensor._rebuild_from_type_v2":        rebuildSubclass,
	"torch.Size":                                 size,
	"torch.device":                               nothing,
	"torch.serialization._get_layout":            nothing,
	"collections.OrderedDict":                    ordered,
	"builtins.set":                               listed,
	"builtins.list":                              listed,
	"builtins.tuple":                             listed,
	"builtins.dict":                              ordered,
	"builtins.bytearray":                         raw,
	"builtins.slice":                             nothing,
	"builtins.complex":                           nothing,
	"_codecs.encode":                             encode,
	"numpy.dtype":                                numpyDType,
	"numpy.core.multiarray._reconstruct":         numpyArray,
	"numpy._core.multiarray._reconstruct":        numpyArray,
	"numpy.core.multiarray.scalar":               numpyScalar,
	"numpy._core.multiarray.scalar":              numpyScalar,
	"numpy.core.numeric._frombuffer":             numpyBuffer,
	"numpy._core.numeric._frombuffer":            numpyBuffer,
}

// constants are names that stand in pickles as arguments.
var constants = []string{
	"torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer", "numpy.ndarray", "ml_dtypes.bfloat16",
	"ml_dtypes.float8_e4m3fn", "ml_dtypes.float8_e5m2", "torch.strided", "torch._C._te.Tensor", "torch.torch.strided",
}

// Global returns what a name stands for.
func (o *owner) Global(module, name string) (any, error) {
	if module == "__builtin__" {
		module = "builtins"
	}
	if module == "torch" || module == "torch.storage" {
		if e, ok := storages[name]; ok {
			return e, nil
		}
	}
	if module == "torch" {
		if e, ok := dtype(name); ok {
			return e, nil
		}
	}
	full := module + "." + name
	if f, ok := functions[full]; ok {
		return f, nil
	}
	for _, c := range constants {
		if full == c {
			return constant(c), nil
		}
	}
	return nil, &pickle.RefusedError{Module: module, Name: name}
}

// Call calls one of the functions.
func (o *owner) Call(fn any, args pickle.Tuple) (any, error) {
	f, ok := fn.(function)
	if !ok {
		return nil, errors.New("a call of something that is not a function")
	}
	return f(o, args)
}

func nothing(*owner, pickle.Tuple) (any, error) { return nil, nil }

// first is the tensor inside a Parameter.
func first(_ *owner, args pickle.Tuple) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("a parameter without a tensor")
	}
	return args[0], nil
}

// rebuildSubclass makes a tensor of a subclass without data of its own: its function, type, arguments and state.
func rebuildSubclass(o *owner, args pickle.Tuple) (any, error) {
	if len(args) < 3 {
		return nil, errors.New("a tensor without its data")
	}
	inner, ok := args[2].(pickle.Tuple)
	if !ok {
		return nil, errors.New("a tensor without its data")
	}
	return o.Call(args[0], inner)
}

func size(_ *owner, args pickle.Tuple) (any, error) {
	if len(args) == 1 {
		if t, ok := args[0].(pickle.Tuple); ok {
			return t, nil
		}
	}
	return args, nil
}

// ordered makes a dictionary from a list of pairs, as in the oldest protocol, or an empty dictionary.
func ordered(_ *owner, args pickle.Tuple) (any, error) {
	d := &pickle.Dict{}
	if len(args) == 0 {
		return d, nil
	}
	pairs, ok := args[0].(*pickle.List)
	if !ok {
		return nil, errors.New("a dictionary of something that is not a list of pairs")
	}
	for _, p := range pairs.Items {
		var pair []any
		switch p := p.(type) {
		case pickle.Tuple:
			pair = p
		case *pickle.List:
			pair = p.Items
		}
		if len(pair) != 2 {
			return nil, errors.New("a dictionary of something that is not a list of pairs")
		}
		d.Keys, d.Values = append(d.Keys, pair[0]), append(d.Values, pair[1])
	}
	return d, nil
}

func listed(_ *owner, args pickle.Tuple) (any, error) {
	if len(args) == 0 {
		return &pickle.List{}, nil
	}
	return args[0], nil
}

// latin1 is a long text that stands for bytes, one a character.
type latin1 struct{ pickle.Blob }

// encode turns text back into bytes: old protocols write bytes as text.
func encode(_ *owner, args pickle.Tuple) (any, error) {
	if len(args) == 2 {
		if name, _ := args[1].(string); name == "latin1" || name == "latin-1" {
			switch text := args[0].(type) {
			case string:
				return fromLatin1(text)
			case pickle.Blob:
				return latin1{text}, nil
			}
		}
	}
	return nil, errors.New("a text that stands for bytes in another encoding than latin1")
}

func fromLatin1(text string) ([]byte, error) {
	var b strings.Builder
	for _, r := range text {
		if r > 0xff {
			return nil, errors.New("a text that stands for bytes has invalid characters")
		}
		b.WriteByte(byte(r))
	}
	return []byte(b.String()), nil
}

func raw(_ *owner, args pickle.Tuple) (any, error) {
	if len(args) == 0 {
		return []byte(nil), nil
	}
	return args[0], nil
}

// tensor is a tensor that a pickle made.
type tensor struct{ container.Tensor }
