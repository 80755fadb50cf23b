// Command ids makes token ids for fixtures/tokenizer/random_strings.py, which holds them to those of `tokenizers`.
//
// Each line of standard input is a JSON object, and so is each line of the answer:
//
//	{"folder": PATH, "texts": [...]}     the ids of each text by the tokenizer of a folder: {"kinds": [...], "ids": [[...], ...]}
//	{"pattern": EXPRESSION, "texts": []} the places, in bytes, of its matches in each text: {"ids": [[start, end, start, ...], ...]}
//
// In the place of ids that cannot be made stands null, and error has the first reason.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/tracediff/tracediff/internal/tokenizer"
	"github.com/tracediff/tracediff/internal/tokenizer/pattern"
)

type request struct {
	Folder  string   `json:"folder"`
	Pattern string   `json:"pattern"`
	Texts   []string `json:"texts"`
}

type answer struct {
	Kinds []string `json:"kinds,omitempty"`
	IDs   [][]int  `json:"ids"`
	Error string   `json:"error,omitempty"`
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ids:", err)
		os.Exit(1)
	}
}

// serve answers all requests.
func serve(in io.Reader, out io.Writer) error {
	w := bufio.NewWriter(out)
	requests, answers := json.NewDecoder(in), json.NewEncoder(w)
	for {
		var r request
		switch err := requests.Decode(&r); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := answers.Encode(r.answer()); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

// answer does what a request asks for.
func (r *request) answer() answer {
	var a answer
	ids, err := r.maker(&a)
	if err != nil {
		return answer{Error: err.Error()}
	}
	for _, text := range r.Texts {
		made, err := ids(text)
		if err != nil && a.Error == "" {
			a.Error = err.Error()
		}
		if made == nil && err == nil {
			made = []int{}
		}
		a.IDs = append(a.IDs, made)
	}
	return a
}

// maker returns what makes ids of a text.
func (r *request) maker(a *answer) (func(string) ([]int, error), error) {
	if r.Folder == "" {
		p, err := pattern.Compile(r.Pattern)
		return func(text string) ([]int, error) {
			places, err := p.Find(text, pattern.NewBudget(len(text)))
			var flat []int
			for _, place := range places {
				flat = append(flat, place[0], place[1])
			}
			return flat, err
		}, err
	}
	tok, err := tokenizer.Open(os.DirFS(r.Folder))
	if err != nil {
		return nil, err
	}
	a.Kinds = tok.Kinds()
	return func(text string) ([]int, error) {
		ids, err := tok.Prompt(text)
		if err != nil {
			return nil, err
		}
		return ids, nil
	}, nil
}
