package report_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/internal/pagetest"
)

// The schemas in docs are made of the types and their comments, so that they cannot say anything else: -update writes them.

const schemaFolder = "../../docs/schema"

// schemas are the roots, by the file that describes them.
var schemas = map[string]any{"report-2.json": report.Document{}, "records-2.json": report.Record{}, "inspect-1.json": report.Inspection{}, "check-1.json": report.CheckDocument{}, "prompts-1.json": report.PromptsDocument{}, "weights-1.json": report.WeightsDocument{}}

func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	said := comments(t)
	for name, root := range schemas {
		m := &maker{said: said, defs: map[string]any{}}
		top := m.of(reflect.TypeOf(root))
		text, err := json.MarshalIndent(map[string]any{
			"$schema": "https://json-schema.org/draft/2020-12/schema", "title": strings.TrimSuffix(name, ".json"),
			"allOf": []any{top}, "$defs": m.defs,
		}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(schemaFolder, name)
		if pagetest.Update() {
			if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.TrimSpace(want), text) {
			t.Errorf("docs/schema/%s is not of the types as they are: go test ./compare/report -update writes it anew; a key that is gone or means something else needs a new version", name)
		}
	}
}

// maker turns types into schemas.
type maker struct {
	said map[string]said
	defs map[string]any
}

// said is what the source says of a type or a field: its comment, and of a type of words the words.
type said struct {
	doc  string
	enum []any
}

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

// of is the schema of a type as encoding/json writes it.
func (m *maker) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[measure.Number]():
		return map[string]any{"anyOf": []any{map[string]any{"type": "number"}, map[string]any{"enum": []any{"NaN", "Infinity", "-Infinity"}}}}
	case t == reflect.TypeFor[diagnose.Number]():
		return map[string]any{"type": []any{"number", "null"}}
	case t == reflect.TypeFor[diagnose.Earlier]():
		return m.of(reflect.TypeFor[diagnose.Mistake]())
	case t.Implements(textMarshaler):
		return map[string]any{"type": "string"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		panic("what does " + t.String() + " write?")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.of(t.Elem())
	case reflect.Struct:
		return m.object(t)
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": []any{"array", "null"}, "items": m.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": []any{"object", "null"}, "additionalProperties": m.of(t.Elem())}
	case reflect.String:
		s := map[string]any{"type": "string"}
		if enum := m.said[t.String()].enum; enum != nil && t.String() != "capture.Status" { // a failed run's says why
			s["enum"] = enum
		}
		return s
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return map[string]any{"type": "integer"}
	}
	panic("no schema for " + t.String())
}

// object defines a struct once and refers to it.
func (m *maker) object(t reflect.Type) map[string]any {
	ref := map[string]any{"$ref": "#/$defs/" + t.String()}
	if _, done := m.defs[t.String()]; done {
		return ref
	}
	properties, required := map[string]any{}, []any{}
	def := map[string]any{"type": "object", "properties": properties}
	m.defs[t.String()] = def
	if doc := m.said[t.String()].doc; doc != "" {
		def["description"] = doc
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if f.Anonymous && name == "" { // its fields are written as those of t
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			m.of(embedded)
			inner := m.defs[embedded.String()].(map[string]any)
			maps.Copy(properties, inner["properties"].(map[string]any))
			if also, ok := inner["required"].([]any); ok {
				required = append(required, also...)
			}
			continue
		}
		property := m.of(f.Type)
		if doc := m.said[t.String()+"."+f.Name].doc; doc != "" {
			property["description"] = doc
		}
		if name == "" {
			name = f.Name
		}
		properties[name] = property
		if options == "" {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		def["required"] = required
	}
	return ref
}

// comments reads what the packages whose types are written say about them.
func comments(t *testing.T) map[string]said {
	all := map[string]said{}
	for _, dir := range []string{".", "..", "../measure", "../gate", "../weights", "../keyorder", "../isolate", "../arithmetic", "../chain", "../detectable", "../diagnose", "../inspect", "../redflag", "../../capture", "../../order"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); ok {
					readDecl(all, f.Name.Name, g)
				}
			}
		}
	}
	return all
}

func readDecl(all map[string]said, pkg string, g *ast.GenDecl) {
	add := func(name, doc string, words ...any) {
		s := all[pkg+"."+name]
		if doc != "" {
			s.doc = strings.Join(strings.Fields(doc), " ")
		}
		s.enum = append(s.enum, words...)
		all[pkg+"."+name] = s
	}
	for _, spec := range g.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			of, ok := s.Type.(*ast.Ident)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, v := range s.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if word, err := strconv.Unquote(lit.Value); err == nil {
						add(of.Name, "", word)
					}
				}
			}
		case *ast.TypeSpec:
			add(s.Name.Name, g.Doc.Text()+s.Doc.Text())
			if fields, ok := s.Type.(*ast.StructType); ok {
				for _, f := range fields.Fields.List {
					for _, n := range f.Names {
						add(fmt.Sprintf("%s.%s", s.Name.Name, n.Name), f.Doc.Text()+" "+f.Comment.Text())
					}
				}
			}
		}
	}
}
