package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/files"
)

// runnerIDs are the token ids of a prompt as the reference runner's tokenizer made them: of a model for whose tokenizer, or chat
// template, there is no code here.
type runnerIDs struct{ reference.Tokenized }

// tokenizerFiles are what the ids of a text depend on.
var tokenizerFiles = []string{
	"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
	"chat_template.json", "vocab.json", "merges.txt", "vocab.txt", "config.json",
}

// maxTokens bounds a file of kept ids, and maxTokenizer one that they depend on.
const (
	maxTokens    = 64 << 20
	maxTokenizer = 256 << 20
)

// askRunner returns the ids of the prompt by transformers' tokenizer. They are kept, so that the next comparison of the same prompt
// needs no Python.
func (j *Job) askRunner(ctx context.Context, e *Env) ([]int, error) {
	key, err := j.tokensKey()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(j.dir, "tokens", key+".json")
	if data, err := files.Read(path, maxTokens); err == nil {
		kept := &runnerIDs{}
		if json.Unmarshal(data, kept) == nil && len(kept.IDs) > 0 && len(kept.Texts) == len(kept.IDs) {
			j.byRunner = kept
			return kept.IDs, nil
		}
	}
	if err := j.prepare(); err != nil {
		return nil, err
	}
	model, _, err := j.handed()
	if err != nil {
		return nil, err
	}
	p := e.progress("asking transformers for token ids", "", nil)
	made, err := reference.Tokenize(ctx, j.interpreter(), model, *j.Prompt, j.Chat)
	p.Done()
	if errors.Is(err, context.Canceled) {
		return nil, errors.New("interrupted")
	}
	if err != nil {
		return nil, fmt.Errorf("the token ids of the prompt: %w", err)
	}
	data, err := json.Marshal(made)
	if err == nil {
		err = WriteWhole(path, append(data, '\n'))
	}
	if err != nil {
		return nil, fmt.Errorf("keeping the token ids: %w", err)
	}
	j.byRunner = &runnerIDs{*made}
	return made.IDs, nil
}

// tokensKey is the name under which the ids of the prompt are kept: a digest of the prompt and of all files of the tokenizer.
func (j *Job) tokensKey() (string, error) {
	h := sha256.New()
	add := func(data []byte) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(data)))
		h.Write(n[:])
		h.Write(data)
	}
	add([]byte(*j.Prompt))
	add(fmt.Appendf(nil, "%t %s", j.Chat, reference.TransformersRunner().Version))
	for _, name := range tokenizerFiles {
		data, err := files.ReadFS(j.folder, name, maxTokenizer)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("reading the tokenizer: %w", err)
		}
		add([]byte(name))
		add(data)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// interpreter is the Python that runs transformers.
func (j *Job) interpreter() string {
	if j.Python == "" {
		return "python3"
	}
	return j.Python
}

// text is the text of an id of the prompt; empty of any other.
func (r *runnerIDs) text(id int) string {
	if r == nil {
		return ""
	}
	if at := slices.Index(r.IDs, id); at >= 0 {
		return r.Texts[at]
	}
	return ""
}

// said is what a report says of the ids.
func (r *runnerIDs) said() string {
	return fmt.Sprintf("the token ids of the prompt were made by the tokenizer of transformers %s", r.Transformers)
}
