package job

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
	"github.com/tracediff/tracediff/internal/settings"
)

// runnerIDs are the token ids of a prompt made by the reference runner's tokenizer, for a tokenizer or a chat
// template not implemented in Go.
type runnerIDs struct{ reference.Tokenized }

// tokenizerFiles are the files with an effect on the ids of a text.
var tokenizerFiles = []string{
	"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
	"chat_template.json", "vocab.json", "merges.txt", "vocab.txt", "config.json",
}

// maxTokens bounds a file of stored ids, and maxTokenizer bounds each tokenizer file the ids depend on.
const (
	maxTokens    = 64 << 20
	maxTokenizer = 256 << 20
)

// askRunner returns the ids of the prompt by transformers' tokenizer. They are kept, so that the next comparison of the same prompt
// needs no Python.
func (r *inputReader) askRunner(ctx context.Context, e *settings.Env) ([]int, error) {
	key, err := r.tokensKey()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(r.handed.Dir, "tokens", key+".json")
	if data, err := files.Read(path, maxTokens); err == nil {
		kept := &runnerIDs{}
		if json.Unmarshal(data, kept) == nil && len(kept.IDs) > 0 && len(kept.Texts) == len(kept.IDs) {
			r.in.byRunner = kept
			return kept.IDs, nil
		}
	}
	if err := r.handed.WriteModel(); err != nil {
		return nil, err
	}
	model, _, err := r.handed.Paths()
	if err != nil {
		return nil, err
	}
	p := e.Begin("asking transformers for token ids", "", nil)
	made, err := reference.Tokenize(ctx, r.settings.Interpreter(), model, *r.settings.Prompt, r.settings.Chat)
	p.Done()
	if errors.Is(err, context.Canceled) {
		return nil, errors.New("interrupted")
	}
	if err != nil {
		return nil, fmt.Errorf("the token ids of the prompt: %w", err)
	}
	data, err := json.Marshal(made)
	if err == nil {
		err = files.WriteWhole(path, append(data, '\n'))
	}
	if err != nil {
		return nil, fmt.Errorf("keeping the token ids: %w", err)
	}
	r.in.byRunner = &runnerIDs{*made}
	return made.IDs, nil
}

// tokensKey is the name under which the ids of the prompt are kept: a digest of the prompt and of all files of the tokenizer.
func (r *inputReader) tokensKey() (string, error) {
	h := sha256.New()
	add := func(data []byte) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(data)))
		h.Write(n[:])
		h.Write(data)
	}
	add([]byte(*r.settings.Prompt))
	add(fmt.Appendf(nil, "%t %s", r.settings.Chat, reference.TransformersRunner().Version))
	for _, name := range tokenizerFiles {
		data, err := files.ReadFS(r.model.Folder, name, maxTokenizer)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("reading the tokenizer: %w", err)
		}
		add([]byte(name))
		add(data)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
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

// said is the sentence about the ids in a report.
func (r *runnerIDs) said() string {
	return fmt.Sprintf("the token ids of the prompt were made by the tokenizer of transformers %s", r.Transformers)
}
