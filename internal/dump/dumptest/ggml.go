package dumptest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// evalCallback is the text of one tensor of sizes ne, the innermost axis first, with these lines below its heading.
func evalCallback(kind, ne string, body ...string) []byte {
	return fmt.Appendf(nil, "common_debug_cb_eval:                   Qcur-0 = (%s)       ROPE(Qcur-0 (reshaped){8, 2, 5, 1}, inp_pos{5, 1, 1, 1}}) = {%s}\n%s\n", kind, ne, strings.Join(body, "\n"))
}

func ggmlCorpus(testing.TB) []Specimen {
	rows := func(rows ...string) []string {
		return append(append([]string{"    [", "        ["}, rows...), "        ],", "    ]", "    sum = 1.500000")
	}
	good := rows("            [      0.5000,      -1.2500  ],", "            [      0.2500,       2.0000  ],")
	elided := rows("            [      0.5000,      -1.2500,       1.0000,    ...,       2.0000,       2.0000,       2.0000  ],")
	one := evalCallback("f32", "2, 2, 1, 1", good...)
	many := bytes.Repeat(evalCallback("f32", "1, 1, 1, 1", "[", "[", "[1.0]", "]", "]"), 60_000)
	return []Specimen{
		{"ggml text", one, ""},
		{"ggml text, elided", evalCallback("f32", "64, 1, 1, 1", elided...), ""},
		{"ggml text, float16", evalCallback("f16", "2, 2, 1, 1", good...), ""},
		{"ggml text, NaN and infinity", evalCallback("f32", "2, 2, 1, 1", rows("[         nan,        -nan  ],", "[         inf,        -inf  ],")...), ""},
		{"ggml text of an older program", []byte("ggml_debug:                 inp_embd = (f32)   GET_ROWS(token_embd.weight{2560, 51200, 1, 1}, inp_tokens{1, 1, 1, 1}}) = {2560, 1, 1, 1}\n" +
			" [\n  [\n   [ -0.0181,   0.0272,   0.0272, ...],\n  ],\n ]\n"), ""},
		{"ggml text after a log", append(bytes.Repeat([]byte("llama_model_loader: - kv   0: general.architecture str = llama\n"), 10_000), one...), ""},
		{"ggml text, cut", append(bytes.Clone(one), one[:len(one)-60]...), ""},
		{"ggml text, cut at the first tensor", one[:len(one)-60], "without a tensor"},
		{"ggml text, quantised", evalCallback("q8_0", "2, 2, 1, 1"), "without a tensor"},
		{"ggml text, a row too short", evalCallback("f32", "3, 2, 1, 1", good...), "2 of 3 elements of an axis"},
		{"ggml text, a row too many", evalCallback("f32", "2, 1, 1, 1", good...), "2 of 1 elements of an axis"},
		{"ggml text, nothing is left out", evalCallback("f32", "6, 1, 1, 1", elided...), "6 of 6 elements of an axis"},
		{"ggml text, two marks", evalCallback("f32", "64, 1, 1, 1", rows("[ 0.5000, ..., 0.2500, ..., 1.0000 ],")...), "two marks"},
		{"ggml text, rows of two sorts", evalCallback("f32", "64, 2, 1, 1", rows("[ 0.5000, ..., 1.0000 ],", "[ 0.5000, 0.2500, ..., 1.0000 ],")...), "other elements of an axis than before"},
		{"ggml text, a block too few", evalCallback("f32", "2, 2, 1, 2", append(good, "more")...), "1 blocks, but its size there is 2"},
		{"ggml text, a log line in a tensor", bytes.Replace(one, []byte("        ],\n"), []byte("llama_perf: 12 ms\n        ],\n"), 1), `"llama_perf: 12 ms" does not belong to it`},
		{"ggml text, a word for a number", bytes.Replace(one, []byte("0.2500"), []byte("0x1p-2"), 1), `"0x1p-2" is not a number`},
		{"ggml text, a line of a megabyte", bytes.Replace(one, []byte("0.5000"), bytes.Repeat([]byte("0"), 1<<20), 1), "a line of more than 4096 bytes"},
		{"ggml text, 2^62 elements", evalCallback("f32", "4611686018427387904, 1, 1, 1", elided...), "which no memory holds"},
		{"ggml text, 2^62 elements by factors", evalCallback("f32", "2147483648, 2147483648, 1, 1", elided...), "which no memory holds"},
		{"ggml text, a size beyond an integer", evalCallback("f32", "99999999999999999999, 1, 1, 1", elided...), "is not the heading of a tensor"},
		{"ggml text, more headings than a graph has", append(bytes.Clone(one), many...), "more than 50000 headings"},
	}
}
