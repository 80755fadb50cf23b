package floors_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// public are the packages that programs of other people may import. Their exported names stay.
var public = []string{"hooks", "capture", "order", "order/op"}

// ownExports are exported names that no other package uses, with the reason. A folder stands for every name of the package.
var ownExports = map[string]string{
	"capture/gemma":      "the modules of the model have the names that they have in the checkpoint",
	"order/program.Axis": "a payload of a step, as the other payloads are",
}

// standard are methods that the standard library calls.
var standard = []string{
	"Error", "Unwrap", "Is", "As", "String", "Read", "ReadAt", "Write", "Close", "Seek", "Set", "Len", "Less", "Swap", "Push", "Pop",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "Open", "Name", "Size", "Mode", "ModTime", "IsDir", "Sys", "Visit",
}

// exported is a package as other packages see it.
type exported struct {
	name    string              // of the package clause
	at      map[string]string   // where each exported name is declared; a method is TYPE.METHOD
	groups  map[string][]string // the exported constants of the declaration that has a constant
	inTypes map[string]bool     // the names in exported declarations: types of parameters, results, fields, variables and constants
}

// A name is exported for another package, or for the tests in a package of their own. Methods count as used where another package selects a method
// or a field of this name, or an interface has the name. An exported name may stay for the sake of an exported declaration that mentions the name, of a
// used constant of the same group, or as an error that a caller may ask for.
func TestExportedNamesHaveUsers(t *testing.T) {
	packages, files := map[string]*exported{}, map[string][]*ast.File{}
	set := token.NewFileSet()
	selected := map[string]map[string]bool{} // the folders that select a name
	interfaces := map[string]bool{}
	for _, name := range standard {
		interfaces[name] = true
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "../.." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel("../..", filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		user := dir
		if strings.HasSuffix(file.Name.Name, "_test") {
			user += " tests"
		}
		files[user] = append(files[user], file)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if selected[n.Sel.Name] == nil {
					selected[n.Sel.Name] = map[string]bool{}
				}
				selected[n.Sel.Name][user] = true
			case *ast.InterfaceType:
				for _, m := range n.Methods.List {
					for _, name := range m.Names {
						interfaces[name.Name] = true
					}
				}
			}
			return true
		})
		if strings.HasSuffix(path, "_test.go") || file.Name.Name == "main" || ast.IsGenerated(file) {
			return nil
		}
		if packages[dir] == nil {
			packages[dir] = &exported{file.Name.Name, map[string]string{}, map[string][]string{}, map[string]bool{}}
		}
		packages[dir].declare(set, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, all := range files {
		for _, file := range all {
			noteUses(used, packages, file)
		}
	}
	found := map[string]string{}
	for dir, p := range packages {
		if slices.Contains(public, dir) {
			continue
		}
		for name, where := range p.at {
			typ, method, isMethod := strings.Cut(name, ".")
			users := selected[method]
			switch {
			case isMethod && (!ast.IsExported(typ) || interfaces[method] || len(users) > 1 || len(users) == 1 && !users[dir]):
			case isMethod:
				found[dir+"."+name] = where
			case used[dir+"."+name], p.inTypes[name], strings.HasPrefix(name, "Err"), strings.HasSuffix(name, "Error"):
			case slices.ContainsFunc(p.groups[name], func(other string) bool { return used[dir+"."+other] }):
			default:
				found[dir+"."+name] = where
			}
		}
	}
	listed := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		dir := name[:strings.IndexByte(name, '.')]
		if ownExports[name] == "" && ownExports[dir] == "" {
			t.Errorf("%s: no other package uses %s: begin the name with a small letter", found[name], name)
		}
		listed[name], listed[dir] = true, true
	}
	for name := range ownExports {
		if !listed[name] {
			t.Errorf("%s is listed and has a user, or is gone", name)
		}
	}
	if len(packages) < 80 {
		t.Errorf("%d packages", len(packages))
	}
}

// declare notes the exported names of a file.
func (p *exported) declare(set *token.FileSet, file *ast.File) {
	note := func(id *ast.Ident, prefix string) {
		if id.IsExported() {
			p.at[prefix+id.Name] = set.Position(id.Pos()).String()
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				note(d.Name, "")
			} else {
				note(d.Name, receiver(d.Recv.List[0].Type)+".")
			}
			if d.Name.IsExported() {
				p.mention(d.Type)
			}
		case *ast.GenDecl:
			p.declareGroup(d, note)
		}
	}
}

// declareGroup notes the names of a declaration of types, variables or constants.
func (p *exported) declareGroup(d *ast.GenDecl, note func(id *ast.Ident, prefix string)) {
	var group []string
	typed := false // a constant without a type and a value has those of the constant before
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if _, ok := s.Type.(*ast.InterfaceType); !ok {
				note(s.Name, "")
			}
			if s.Name.IsExported() {
				p.mention(s.Type)
			}
		case *ast.ValueSpec:
			if s.Type != nil || len(s.Values) > 0 {
				id, ok := s.Type.(*ast.Ident)
				typed = ok && id.IsExported()
			}
			for _, id := range s.Names {
				note(id, "")
				group = append(group, id.Name)
				if id.IsExported() && s.Type != nil {
					p.mention(s.Type)
				}
				if d.Tok == token.CONST && typed { // of an enumeration
					p.inTypes[id.Name] = true
				}
			}
		}
	}
	if d.Tok == token.CONST {
		for _, name := range group {
			p.groups[name] = group
		}
	}
}

// mention notes the names in a type, without the names of fields and the types of fields that are not exported.
func (p *exported) mention(e ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
					p.mention(f.Type)
				}
			}
			return false
		case *ast.Field:
			p.mention(n.Type)
			return false
		case *ast.SelectorExpr: // of another package
			return false
		case *ast.Ident:
			p.inTypes[n.Name] = true
		}
		return true
	})
}

// noteUses notes the names of imported packages that a file uses, as FOLDER.NAME.
func noteUses(used map[string]bool, packages map[string]*exported, file *ast.File) {
	imported := map[string]string{} // folders, by the name in the file
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		dir, ours := strings.CutPrefix(path, module+"/")
		if err != nil || !ours || packages[dir] == nil {
			continue
		}
		name := packages[dir].name
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = dir
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && imported[id.Name] != "" {
				used[imported[id.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
}
