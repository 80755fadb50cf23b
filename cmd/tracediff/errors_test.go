package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/internal/settings"
)

// failing are the ways in which a command line cannot be used, each with what is said first and what is to be done. The
// words between commas are arguments; the folder has what prepareErrors puts there.
var failing = []struct {
	args string
	what string // a pattern of the first line, behind "tracediff: "
	hint string // one of the second
}{
	{"decode", `unknown command "decode"`, "--help lists commands"},
	{"debug", `unknown command "debug"`, "capture --debug"},
	{"report", `unknown command "report"`, "compare --report html="},
	{"isolate", `unknown command "isolate"`, "compare --isolate FILE"},
	{"comapre", `unknown command "comapre"`, "did you mean tracediff compare"},
	{"doctr", `unknown command "doctr"`, "did you mean tracediff doctor"},
	{"compare,--lvl,2", `there is no flag --lvl`, "did you mean --level"},
	{"compare,--layer,2", `there is no flag --layer`, "did you mean --layers"},
	{"check,--fromat,json", `there is no flag --fromat`, "did you mean --format"},
	{"--bogus", `there is no flag --bogus`, "--help"},
	{"compare,--bogus", `there is no flag --bogus`, "tracediff compare --help lists the flags"},
	{"compare,--max-new-tokens,x", `--max-new-tokens is "x"$`, "want a whole number; tracediff compare --help"},
	{"compare,--rtol,x", `--rtol is "x"$`, "want a number; tracediff"},
	{"compare,--all=x", `--all is "x"$`, "want true or false; tracediff"},
	{"doctor,--timeout,x", `--timeout is "x"$`, "want a time such as 30s; tracediff"},
	{"-v", `there is no flag -v$`, "tracediff --help lists commands"},
	{"compare,--dir", `a value is missing after --dir`, "tracediff compare --help lists the flags"},
	{"compare,a,b,c", `compare takes two traces or none, not 3 arguments`, "compare LOCAL REFERENCE"},
	{"compare,hello.safetensors", `compare takes two traces or none`, "--isolate"},
	{"compare,hello.safetensors,nowhere", `.*nowhere: no such file`, "two trace files"},
	{"compare,hello.safetensors,notes.txt", `.*notes.txt`, "want a trace"},
	{"compare,hello.safetensors,half.safetensors", `.*half.safetensors`, "cut short"},
	{"compare,hello.safetensors,hello.safetensors,--prompt,x", `--prompt does not apply to trace files`, "nothing is run"},
	{"compare,hello.safetensors,hello.safetensors,--layers,90-91", `.*layers 90-91: the model has layers 0 to 6`, "tracediff order"},
	{"compare,--isolate,--no-isolate", `--isolate and --no-isolate were both given`, "leave one"},
	{"compare,--isolate,hello.safetensors,--rtol,1e-3", `--rtol does not apply to one trace`, "compare LOCAL REFERENCE"},
	{"compare,--isolate,hello.safetensors,--atol,1e-3", `--atol does not apply to one trace`, "compare LOCAL REFERENCE"},
	{"compare,--isolate,hello.safetensors,--positions,0", `--positions does not apply to one trace`, "compare LOCAL REFERENCE"},
	{"compare,--isolate,hello.safetensors,--strict-dtype", `--strict-dtype does not apply to one trace`, "compare LOCAL REFERENCE"},
	{"compare,--isolate,hello.safetensors,--tolerances,limits.toml", `--tolerances limits.toml: a \[\[tolerance\]\] does not apply`, "may have .*allow"},
	{"compare,hello.safetensors,hello.safetensors,--no-isolate,--arithmetic,strict", `--arithmetic does not apply with --no-isolate`, "leave one"},
	{"compare,hello.safetensors,hello.safetensors,--no-isolate,--require-certified", `--require-certified does not apply with --no-isolate`, "leave one"},
	{"compare,--ab,hello.safetensors,hello.safetensors,--require-certified", `--require-certified does not apply to an A/B comparison`, "--isolate FILE"},
	{"compare,hello.safetensors,hello.safetensors,--no-isolate,--bound,rigorous", `--bound does not apply with --no-isolate`, "leave one"},
	{"compare,--ab,hello.safetensors,hello.safetensors,--no-isolate", `--no-isolate does not apply to an A/B comparison`, "--isolate FILE"},
	{"compare,--ab,hello.safetensors,hello.safetensors,--isolate", `--isolate does not apply to an A/B comparison`, "--isolate FILE"},
	{"compare,--ab,hello.safetensors,hello.safetensors,--rtol,-1", `--rtol is -1`, "."},
	{"compare,--arithmetic,loose", `--arithmetic is "loose"`, "want auto or strict"},
	{"compare,--arithmetic,free", `--arithmetic free no longer exists`, "auto finds how an engine rounds"},
	{"compare,--isolate,hello.safetensors,--arithmetic,float16", `--arithmetic float16 no longer exists`, "auto finds how an engine rounds"},
	{"gate,--config,gate.toml,--arithmetic,free", `--arithmetic free no longer exists`, "auto finds how an engine rounds"},
	{"gate,--config,gate.toml,--no-isolate,--require-certified", `--require-certified does not apply with --no-isolate`, "leave one"},
	{"gate,--config,required.toml,--no-isolate", `--no-isolate certifies nothing, and required.toml has require_certified`, "leave one"},
	{"compare,--bound,none", `--bound is "none"`, "want probabilistic"},
	{"compare,--color,sometimes", `--color is "sometimes"$`, "want auto, always or never"},
	{"compare,--format,yaml", `--format is "yaml"`, "want html, json, jsonl, junit, sarif or text"},
	{"compare,--report,out.xml", `--report is "out.xml"`, "FORMAT=FILE"},
	{"compare,--report,xml=out.xml", `--report is "xml=out.xml"`, "FORMAT=FILE"},
	{"compare,--report,json=a,--report,junit=a", `--report: two reports would be written to "a"`, "of its own"},
	{"compare,--tokens,2,--report,json=notes.txt/a", `--report: notes.txt/a is below a file`, "check the path"},
	{"compare,--tokens,2,--report,json=no/a.json", `--report: no/a.json has no folder: no is not there`, "make the folder first"},
	{"compare,--tokens,2,--report,json=broken", `--report: broken is a folder`, "name a file in it"},
	{"compare,--tokens,2,--report,json=-", `--report: - is not a file`, "--format json writes to standard output"},
	{"compare,--tokens,2,--report,json=a,--report,junit=./a", `--report: two reports would be written to "./a"`, "of its own"},
	{"compare,hello.safetensors,odd.safetensors,--report,json=./odd.safetensors", `--report: ./odd.safetensors is odd.safetensors, which this command reads`, "of its own"},
	{"compare,--quiet,--verbose", `--quiet and --verbose were both given`, "leave one"},
	{"compare,--quiet,--debug", `--quiet and --debug were both given`, "leave one"},
	{"compare,hello.safetensors,hello.safetensors,--debug", `--debug does not apply to trace files`, "nothing is run"},
	{"compare,--level,3", `nothing was captured in .tracediff, and the command names no input`, "tracediff demo"},
	{"compare,--tokens,2,--layers,5-7", `.*layers 5-7: the model has layers 0 to 6`, "tracediff order"},
	{"compare,--tokens,2,--passes,1", `--passes 1: the run has passes 0 to 0`, "--max-new-tokens"},
	{"compare,--reference,odd.safetensors", `.*cannot be the reference of`, "same checkpoint"},
	{"compare,--dir,broken", `reading the settings of the last capture`, "compare --prompt"},
	{"check", `check takes one trace, not 0 arguments`, "check TRACE"},
	{"check,a,b", `check takes one trace, not 2 arguments`, "check TRACE"},
	{"check,-", `a trace is read from a file`, "write it to a file"},
	{"check,nowhere", `.*nowhere: no such file`, "want a trace"},
	{"check,notes.txt", `.*notes.txt`, "want a trace"},
	{"check,half.safetensors", `.*half.safetensors`, "cut short"},
	{"check,hello.safetensors,--format,junit", `--format is "junit"`, "want text or json"},
	{"check,hello.safetensors,--skip,zero,--skip,gradients", `--skip: "gradients" is not a kind of flag`, "want non-finite, zero"},
	{"check,hello.safetensors,--magnitude,0", `--magnitude is 0`, "want a positive number"},
	{"check,hello.safetensors,--color,sometimes", `--color is "sometimes"$`, "want auto, always or never"},
	{"capture,Hello", `unexpected argument "Hello"`, "quote a prompt"},
	{"capture,--side,neither", `--side is "neither"`, "local is your port, reference is the side that your port is compared with, both is the default"},
	{"capture,--level,4", `--level is 4, want 1, 2 or 3`, "1 is block boundaries"},
	{"capture,--level,x", `--level is "x"$`, "want a whole number; .*--help"},
	{"capture,--layers,3-1", `--layers: "3-1"`, "numbers count from 0"},
	{"capture,--tensors,[", `--tensors: pattern`, "--help"},
	{"capture,--tensors,nothing.here", `.*nothing.here`, "tracediff order"},
	{"capture,--dtype,int8", `--dtype is "int8"`, "want float32"},
	{"capture,--prompt,", `the prompt is empty`, "--tokens"},
	{"capture,--prompt,x,--tokens,2", `--prompt and --tokens were both given`, "text or the ids"},
	{"capture,--tokens,two", `--tokens: "two" is not a token id`, "want ids"},
	{"capture,--tokens,4096", `token id 4096 at position 0 is outside the vocabulary`, "."},
	{"capture,--tokens,", `--tokens is empty`, "leave the flag out"},
	{"capture,--chat", `--chat needs a prompt`, "--prompt TEXT"},
	{"compare,--rtol,1e308", `--rtol is 1e\+308, want 1 at most`, "the noise floor of the prompt decides"},
	{"capture,--max-new-tokens,-1", `--max-new-tokens is -1`, "0 captures only the input"},
	{"capture,--max-new-tokens,200", `.*tokens are more than the 128 positions`, "."},
	{"capture,--model,nowhere", `nowhere: opening the model directory`, "check the path"},
	{"capture,--model,notes.txt", `notes.txt: .*is a file`, "."},
	{"capture,--model,.", `\.: .*config.json`, "check the path"},
	{"capture,--order,nowhere", `reading the order: `, "tracediff order"},
	{"capture,--order,odd.safetensors", `.*odd.safetensors`, "."},
	{"capture,--local,hf", `--local is "hf"`, "exec:COMMAND"},
	{"capture,--local,exec:", `--local has an empty command`, "for example"},
	{"capture,--local,exec:true {nothing}", `--local: .*\{nothing\}`, "for example"},
	{"capture,--local,exec:true", `--local: .*exit`, "."},
	{"capture,--local,exec:exit 3", `--local: .*3`, "."},
	{"capture,--reference,ghosts", `--reference is "ghosts"`, "wants a trace file"},
	{"capture,--reference,hf,--python,./nowhere", `--reference hf: `, "."},
	{"capture,--prompt,No golden has this,--gate", `there is no trace of transformers`, "make one: tracediff capture"},
	{"capture,--dir,notes.txt", `.*notes.txt`, "."},
	{"order,--format,yaml", `--format is "yaml"$`, "want table, json or text"},
	{"order,--level,0", `--level is 0, want 1, 2 or 3$`, "1 is block boundaries"},
	{"order,--layers,x", `--layers: "x"`, "numbers count from 0"},
	{"order,--model,nowhere", `nowhere: `, "check the path"},
	{"order,names", `unexpected argument "names"`, "--help"},
	{"doctor,--timeout,0s", `--timeout is 0s, want a time`, "--help"},
	{"doctor,--format,yaml", `--format is "yaml"$`, "want text or json"},
	{"inspect", `inspect takes a file, or a file and the name of a tensor`, "inspect FILE"},
	{"inspect,a,b,c,d", `inspect takes a file, .* not 4 arguments`, "inspect FILE"},
	{"inspect,\x1b[31mred", `.*\\x1b\[31mred: no such file`, "inspect FILE"},
	{"inspect,hello.safetensors,layers.*,--slice,1", `--slice, --axis and --row are about one tensor, and "layers.\*" names [0-9]+`, "name one"},
	{"inspect,hello.safetensors,logits,--header", `--header is about a list`, "leave it out"},
	{"inspect,hello.safetensors,hello.safetensors,logits,--header", `--header is about a list`, "leave it out"},
	{"inspect,hello.safetensors,odd.safetensors,logits,--slice,0", `--slice: "logits" has the shapes`, "look at one file"},
	{"inspect,nowhere", `.*nowhere: no such file`, "inspect FILE"},
	{"inspect,notes.txt", `.*notes.txt`, "want a trace, or a dump"},
	{"inspect,half.safetensors", `.*half.safetensors: a header of`, "cut short"},
	{"inspect,-", `inspect cannot read standard input`, "to a file"},
	{"inspect,.", `.*half.safetensors: a header of`, "cut short"},
	{"inspect,hello.safetensors,", `the name is empty`, "leave it out"},
	{"inspect,hello.safetensors,embed", `.*has no tensor "embed"`, `did you mean "embed_tokens"`},
	{"inspect,hello.safetensors,odd.safetensors", `.*has no tensor "odd.safetensors"`, "inspect A B NAME"},
	{"inspect,hello.safetensors,odd.safetensors,layers.*", `"layers.\*" names [0-9]+ tensors of hello`, "for one tensor"},
	{"inspect,hello.safetensors,logits,--pass,3", `.*--pass 3: .*has no tensor of it`, "only pass 0"},
	{"inspect,hello.safetensors,--pass,x", `--pass: "x"`, "numbers count from 0"},
	{"inspect,hello.safetensors,--slice,0", `--slice, --axis and --row need the name of one tensor`, "inspect FILE"},
	{"inspect,hello.safetensors,logits,--slice,9", `--slice "9": axis 0, of size 1: index 9`, "start:stop:step"},
	{"inspect,hello.safetensors,logits,--slice,", `--slice is empty`, "start:stop:step"},
	{"inspect,hello.safetensors,logits,--axis,-4", `--axis -4: "logits" has 3 axes`, "axes count from 0"},
	{"inspect,hello.safetensors,norm,--row,0", `--row: "norm" has no logits`, "--slice"},
	{"inspect,hello.safetensors,logits,--row,99", `--row 99: "logits" has 3 rows`, "rows count from 0"},
	{"inspect,hello.safetensors,logits,--top,0", `--top is 0`, "--help"},
	{"inspect,hello.safetensors,--format,yaml", `--format is "yaml"$`, "want text or json"},
	{"inspect,hello.safetensors,logits,--model,nowhere", `nowhere: `, "check the path"},
	{"inspect,hello.safetensors,--quiet,--verbose", `--quiet and --verbose were both given`, "leave one"},
	{"gate", `there is no tracediff.toml here`, "tracediff init"},
	{"gate,--config,nowhere.toml", `nowhere.toml: .*no such file`, "check the path; tracediff init FILE"},
	{"gate,--config,level.toml", `level.toml: prompt "a": level is 4`, "1 is block boundaries"},
	{"gate,--config,layers.toml", `prompt "a": .*layers 5-90: the model`, "tracediff order"},
	{"gate,--config,dtype.toml", `dtype.toml: prompt "a": dtype is "int8"`, "want float32"},
	{"gate,--config,notes.txt", `notes.txt: line 1, "no trace": `, "tracediff init"},
	{"gate,--config,empty.toml", `empty.toml: it has 0 sections`, "tracediff init"},
	{"gate,--config,gate.toml,nobody", `there is no prompt "nobody"`, "the file has a"},
	{"gate,--config,gate.toml,--format,yaml", `--format is "yaml"$`, "want html, json"},
	{"gate,--config,gate.toml", `prompt "a": there is no trace of transformers`, "make one: tracediff capture"},
	{"gate,--quiet,--verbose", `--quiet and --verbose were both given`, "leave one"},
	{"init,a,b", `init takes one file`, "init FILE"},
	{"init,notes.txt", `notes.txt: it exists already`, "name another file"},
	{"init,notes.txt/a", `notes.txt/a: `, "."},
	{"diff-program,nowhere,notes.txt", `reading the program: nowhere: no such file or directory$`, "check the path; python -m tracediff.hf --program records one"},
	{"accept,notes.txt", `notes.txt is not a JSON report of a comparison`, "tracediff compare --report json="},
	{"version,now", `unexpected argument "now"`, "--help"},
	{"completion,tcsh", `completion: unknown shell "tcsh"`, "want bash, zsh or fish"},
	{"completion", `completion wants the name of a shell`, "want bash, zsh or fish"},
}

// prepareErrors makes a folder with two goldens, half of one, a file that is no trace, and settings that are none.
func prepareErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("CI", "")
	files := map[string][]byte{
		"notes.txt": []byte("no trace\n"), "empty.toml": nil, "limits.toml": []byte("[[tolerance]]\ntensors = '*'\nrtol = 0.1\n"), "required.toml": []byte("require_certified = true\n[[prompt]]\nname = 'a'\ntokens = '2'\n"), "gate.toml": []byte("[[prompt]]\nname = 'a'\ntokens = '2'\n"),
		"level.toml": []byte("level = 4\n[[prompt]]\nname = 'a'\ntokens = '2'\n"), "layers.toml": []byte("layers = '5-90'\n[[prompt]]\nname = 'a'\ntokens = '2'\n"),
		"dtype.toml": []byte("dtype = 'int8'\n[[prompt]]\nname = 'a'\ntokens = '2'\n"),
		filepath.Join("broken", settings.SettingsFile): []byte(`{"tokenz": "2"}`),
	}
	for name, golden := range map[string]string{
		"hello.safetensors": "golden/gemma3n-tiny/hello.bfloat16.safetensors", "odd.safetensors": "golden/gemma3n-odd/prefill.bfloat16.safetensors",
	} {
		data, err := fs.ReadFile(ondisk.Files(), golden)
		must(t, err)
		files[name] = data
	}
	files["half.safetensors"] = files["hello.safetensors"][:30000]
	must(t, os.Mkdir("broken", 0o777))
	for name, data := range files {
		must(t, os.WriteFile(name, data, 0o666))
	}
}

// Every error is two lines, what is wrong and what to do, on standard error alone; the exit status is 2.
func TestErrors(t *testing.T) {
	prepareErrors(t)
	for _, f := range failing {
		t.Run(f.args, func(t *testing.T) {
			var out, errOut bytes.Buffer
			status := run(append([]string{"tracediff"}, strings.Split(f.args, ",")...), nil, &out, &errOut)
			if status != exitUnusable {
				t.Errorf("exit status %d, want %d", status, exitUnusable)
			}
			text := errOut.String()
			at := strings.LastIndex("\n"+text, "\ntracediff: ") // behind what a command printed, and notes
			if at < 0 || !regexp.MustCompile(`\Atracediff: [^\n]+\nhint: [^\n]+\n\z`).MatchString(text[at:]) {
				t.Fatalf("not of two lines:\n%s", text)
			}
			first, second, _ := strings.Cut(text[at:], "\n")
			if !regexp.MustCompile("^tracediff: " + f.what).MatchString(first) {
				t.Errorf("%q does not say %q", first, f.what)
			}
			if !regexp.MustCompile("^hint: .*" + f.hint).MatchString(second) {
				t.Errorf("%q does not say %q", second, f.hint)
			}
		})
	}
}

// Every command's help has an example that begins with the command.
func TestHelpHasExamples(t *testing.T) {
	app := newApp(nil, &bytes.Buffer{}, &bytes.Buffer{})
	for _, c := range app.Commands {
		_, examples, ok := strings.Cut(c.Description, "Example")
		if !ok || !strings.Contains(examples, "tracediff "+c.Name) {
			t.Errorf("the help of %s has no example of it:\n%s", c.Name, c.Description)
		}
	}
}
