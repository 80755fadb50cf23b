package tokenizer_test

import (
	"encoding/json"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tracediff/tracediff/internal/tokenizer"
)

// withConfig returns a directory with the tokenizer.json of a family and the two files beside it.
func withConfig(t testing.TB, family, config, jinja string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{"tokenizer.json": {Data: familyJSON(t, family)}}
	if config != "" {
		files["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(config)}
	}
	if jinja != "" {
		files["chat_template.jinja"] = &fstest.MapFile{Data: []byte(jinja)}
	}
	return files
}

// A chatGolden is a tokenizer with its config, and the ids that AutoTokenizer then gives.
type chatGolden struct {
	Name, Family string
	Config       json.RawMessage
	Jinja        string
	Texts        []answer
	Chats        []answer
}

// An answer is the ids of a text or of a prompt.
type answer struct {
	Text, Prompt string
	IDs          []int
}

// prompt returns the ids of a prompt as the program has them: a BOS, where there is one, and the text.
func prompt(t testing.TB, tok *tokenizer.Tokenizer, text string) []int {
	t.Helper()
	ids := encode(t, tok, text)
	if bos, ok := tok.BOS(); ok {
		ids = append([]int{bos}, ids...)
	}
	return ids
}

func TestPromptsEqualTransformers(t *testing.T) {
	cases := lines[chatGolden](t, "chats.jsonl")
	if len(cases) < 10 {
		t.Fatalf("only %d tokenizers", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			tok := open(t, withConfig(t, c.Family, string(c.Config), c.Jinja))
			for _, g := range c.Texts {
				if got := prompt(t, tok, g.Text); !equal(got, g.IDs) {
					t.Errorf("%q: %v, want %v", g.Text, got, g.IDs)
				}
			}
			for _, g := range c.Chats {
				if got, err := tok.Chat(g.Prompt); err != nil || !equal(got, g.IDs) {
					t.Errorf("Chat(%q) = %v, %v, want %v", g.Prompt, got, err, g.IDs)
				}
			}
			if _, err := tok.Chat("a"); c.Chats == nil && err == nil {
				t.Error("a checkpoint without a template: Chat gives no error")
			}
		})
	}
}

// llama3Template and chatMLTemplate are known; every case below changes one thing in them.
const (
	llama3Template = `{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ ` +
		`message['content'] | trim + '<|eot_id|>' }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}`
	chatMLTemplate = `{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}{% for message in messages %}` +
		`{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n' }}`
)

func TestUnknownTemplatesAreRefused(t *testing.T) {
	const unknown = "not a known one"
	for _, c := range []struct{ family, template, old, new, want string }{
		{"llama3", llama3Template, "", "", ""},
		{"llama3", llama3Template, llama3Template, "", "chat_template.jinja"},
		{"llama3", llama3Template, " | trim", "", unknown},
		{"llama3", llama3Template, "{{ bos_token }}", "{{ bos_token }}{{ strftime_now('%d') }}", "today's date"},
		{"llama3", llama3Template, "{{ bos_token }}", "{{ bos_token }}{{ 'system' }}", unknown},
		{"llama3", llama3Template, "assistant<|end_header_id|>\\n\\n'", "assistant<|end_header_id|>\\n\\nYes: '", unknown},
		{"qwen2", chatMLTemplate, "", "", ""},
		{"qwen2", chatMLTemplate, chatMLTemplate, "", "chat_template.jinja"},
		{"qwen2", chatMLTemplate, "message.content", "message.content | trim", unknown},
		{"qwen2", chatMLTemplate, "assistant\\n'", "assistant\\n<think>\\n'", unknown},
		{"qwen2", chatMLTemplate, "Be brief.", "Be {{ 'brief' }}.", unknown},
		{"qwen2", chatMLTemplate, "{% for", "{{ '<|im_start|>system\\nBe long.<|im_end|>\\n' }}{% for", unknown},
		{"qwen2", chatMLTemplate, "<|im_end|>\\n' }}{% for", "{% for", unknown},
		{"qwen2", chatMLTemplate, "<|im_start|>assistant", "<|im_start|>model", unknown},
		{"gpt2", "{{ x }}", "", "", unknown}, // it has Llama 3's markers
		{"llama2", "", "", "", ""},           // and this Gemma's, which need no template
	} {
		tok := open(t, withConfig(t, c.family, "", strings.Replace(c.template, c.old, c.new, 1)))
		_, err := tok.Chat("a")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %q: %v, want an error that contains %q", c.family, c.new, err, c.want)
		}
	}
}

func TestChatWritesTheSystemTurnOfTheTemplate(t *testing.T) {
	tok := open(t, withConfig(t, "qwen2", "", chatMLTemplate))
	got, err := tok.Chat(" a")
	if err != nil {
		t.Fatal(err)
	}
	want := encode(t, tok, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n a<|im_end|>\n<|im_start|>assistant\n")
	if !equal(got, want) {
		t.Errorf("Chat = %v, want %v", got, want)
	}
}

func TestChatNeedsABOS(t *testing.T) {
	for name, tok := range map[string]*tokenizer.Tokenizer{
		"none in the post-processor": open(t, withConfig(t, "gpt2", "", llama3Template)),
		"null in the config":         open(t, withConfig(t, "llama3", `{"bos_token": null}`, llama3Template)),
	} {
		if _, err := tok.Chat("a"); err == nil || !strings.Contains(err.Error(), "BOS") {
			t.Errorf("%s: Chat: %v, want an error that says so", name, err)
		}
	}
}

func TestConfigsAreChecked(t *testing.T) {
	token := func(id, flags string) string {
		return `{"added_tokens_decoder": {"` + id + `": {"content": "<|im_end|>", "lstrip": false, "normalized": false,
			"rstrip": false, "single_word": false, "special": true` + flags + `}}}`
	}
	tok := openFamily(t, "qwen2")
	end := encode(t, tok, "<|im_end|>")[0]
	id, other := strconv.Itoa(end), strconv.Itoa(end+1)
	for _, c := range []struct{ config, want string }{
		{token(id, ""), ""},
		{token(id, `, "normalized": true`), ""}, // of a special token it does not count
		{token(other, ""), "added_tokens_decoder"},
		{token("x", ""), "added_tokens_decoder"},
		{token(id, `, "content": "<|pad|>"`), "<|pad|>"},
		{token(id, `, "lstrip": true`), "flags"},
		{`{"added_tokens_decoder": {"` + strconv.Itoa(end+1) + `": {"content": "<tool_call>", "normalized": true}}}`, "flags"},
		{`{"bos_token": "<s>"}`, `"<s>"`},
		{`{"bos_token": 1}`, "bos_token"},
		{`{"bos_token": {"text": "<s>"}}`, "bos_token"},
		{`{"chat_template": 1}`, "chat_template"},
		{`{"add_bos_token": false, "bos_token": null, "chat_template": null, "model_max_length": 1e30}`, ""},
		{`{"add_bos_token"`, "tokenizer_config.json"},
		{`[]`, "tokenizer_config.json"},
	} {
		_, err := tokenizer.Open(withConfig(t, "qwen2", c.config, ""))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !containsAll(err.Error(), "tokenizer_config.json", c.want)) {
			t.Errorf("%s: %v, want an error that names %q", c.config, err, c.want)
		}
	}
	files := withConfig(t, "qwen2", "", "")
	files["tokenizer_config.json"] = &fstest.MapFile{Mode: fs.ModeDir}
	if _, err := tokenizer.Open(files); err == nil {
		t.Error("tokenizer_config.json is a directory: want an error")
	}
}
