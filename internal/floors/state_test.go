package floors_test

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// stateless are folders whose packages keep nothing between two calls, so that one process may run any number of comparisons, one after the other or
// at the same time.
var stateless = []string{
	"internal/session", "internal/ci", "internal/gatefile", "internal/origin", "internal/portweights", "internal/proven", "internal/settings", "internal/tracefolder",
	"capture", "compare", "hooks", "order",
}

// states are variables of these packages that a function writes, or that hold a lock or a pointer, with the reason.
var states = map[string]string{
	"capture/reference.buffers":       "room that is used again, without what was in it",
	"compare/diagnose.rows":           "the catalogue, made once from the sources",
	"compare/diagnose.usuals":         "a table that is read through pointers to its rows",
	"compare/measure.empty":           "the tally of no element, which is copied",
	"compare/measure.noPick":          "the pick of no element, which is copied",
	"compare/redflag.Kinds":           "a table that is read through pointers to its rows",
	"compare/weights.signs":           "a table that is read through pointers to its rows",
	"order.derived":                   "the source of every derived entry, which is copied",
	"order/op.forms":                  "the form of an operation follows from the operation",
	"order/program.programs":          "the program of an operation follows from the operation and the shapes",
	"order/program/rewrite.Kernels":   "a table that is read through pointers to its rows",
	"order/program/rewrite.ordersOf":  "the orders of n terms follow from n",
	"order/program/rewrite.rewritten": "a rewritten program follows from the program and the rewrite",
	"order/recorded.formulas":         "a table that init makes, since its functions read the table",
}

// No function of a stateless package writes a variable of the package, and no variable of the package can be written without its name: none holds a
// lock, a pointer to a struct, or a struct of the package with a lock, a map or methods of its pointer.
func TestNoPackageState(t *testing.T) {
	vars, writes := map[string]map[string]string{}, map[string]map[string]string{} // by folder and name; the value says where
	note := func(m map[string]map[string]string, dir, name, where string) {
		if m[dir] == nil {
			m[dir] = map[string]string{}
		}
		m[dir][name] = where
	}
	found := map[string]string{}
	type variable struct{ key, dir, kind, where string }
	var typed []variable
	keepers := map[string]bool{} // structs by folder and name
	eachFile(t, "../..", func(dir string, set *token.FileSet, file *ast.File) {
		if !slices.ContainsFunc(stateless, func(root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }) {
			return
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				eachVar(d, func(name *ast.Ident, kind, value ast.Expr) {
					note(vars, dir, name.Name, "")
					key, where := dir+"."+name.Name, set.Position(name.Pos()).String()
					if changeable(kind) || changeable(value) {
						found[key] = where
					}
					typed = append(typed, variable{key, dir, typeOf(kind, value), where})
				})
				for _, s := range d.Specs {
					if of, ok := s.(*ast.TypeSpec); ok && keeps(of.Type) {
						keepers[dir+"."+of.Name.Name] = true
					}
				}
			case *ast.FuncDecl:
				if d.Recv != nil {
					if _, pointer := d.Recv.List[0].Type.(*ast.StarExpr); pointer {
						keepers[dir+"."+receiver(d.Recv.List[0].Type)] = true
					}
				}
				for _, id := range written(d) {
					note(writes, dir, id.Name, set.Position(id.Pos()).String())
				}
			}
		}
	})
	for _, v := range typed {
		if keepers[v.dir+"."+v.kind] {
			found[v.key] = v.where
		}
	}
	for dir, names := range writes {
		for name, where := range names {
			if _, ok := vars[dir][name]; ok {
				found[dir+"."+name] = where
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if states[name] == "" {
			t.Errorf("%s: %s is state of its package", found[name], name)
		}
	}
	for name := range states {
		if found[name] == "" {
			t.Errorf("%s is listed and is no state", name)
		}
	}
	if n := len(vars); n < 20 {
		t.Errorf("%d packages have variables", n)
	}
}

// eachVar calls do for each variable of a declaration, with its type and its value where there are any.
func eachVar(d *ast.GenDecl, do func(name *ast.Ident, kind, value ast.Expr)) {
	if d.Tok != token.VAR {
		return
	}
	for _, s := range d.Specs {
		spec := s.(*ast.ValueSpec)
		for k, name := range spec.Names {
			var value ast.Expr
			if k < len(spec.Values) {
				value = spec.Values[k]
			}
			do(name, spec.Type, value)
		}
	}
}

// changeable reports whether a type or a value is a lock, a counter of package atomic, a channel or a pointer to a struct.
func changeable(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		return ok && (pkg.Name == "sync" || pkg.Name == "atomic")
	case *ast.IndexExpr:
		return changeable(e.X)
	case *ast.CompositeLit:
		return changeable(e.Type)
	case *ast.UnaryExpr:
		return e.Op == token.AND
	case *ast.StarExpr, *ast.ChanType:
		return true
	case *ast.CallExpr:
		id, ok := e.Fun.(*ast.Ident)
		return ok && (id.Name == "new" || id.Name == "make" && changeable(e.Args[0]))
	}
	return false
}

// typeOf is the name of the type of a variable, if it is of its own package; else "".
func typeOf(kind, value ast.Expr) string {
	if lit, ok := value.(*ast.CompositeLit); ok && kind == nil {
		kind = lit.Type
	}
	if id, ok := kind.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// keeps reports whether a type is a struct with a lock, a map or a pointer.
func keeps(of ast.Expr) bool {
	s, ok := of.(*ast.StructType)
	return ok && slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		_, table := f.Type.(*ast.MapType)
		return table || changeable(f.Type)
	})
}

// written are the names that a function writes or takes the address of and does not declare: a name, an element or a field.
func written(f *ast.FuncDecl) []*ast.Ident {
	var all []*ast.Ident
	own := map[string]bool{}
	declare := func(fields *ast.FieldList) {
		if fields == nil {
			return
		}
		for _, field := range fields.List {
			for _, name := range field.Names {
				own[name.Name] = true
			}
		}
	}
	declare(f.Recv)
	note := func(e ast.Expr) {
		if id := rootOf(e); id != nil {
			all = append(all, id)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			declare(n.Params)
			declare(n.Results)
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					own[id.Name] = true
					continue
				}
				note(e)
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					own[id.Name] = true
				} else if e != nil {
					note(e)
				}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				own[name.Name] = true
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				note(n.X)
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
				note(n.Args[0])
			}
		}
		return true
	})
	return slices.DeleteFunc(all, func(id *ast.Ident) bool { return own[id.Name] })
}

// rootOf returns the variable that an expression is a part of; nil for a value that has no name.
func rootOf(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return rootOf(e.X)
	case *ast.IndexExpr:
		return rootOf(e.X)
	case *ast.SliceExpr:
		return rootOf(e.X)
	case *ast.StarExpr:
		return rootOf(e.X)
	case *ast.ParenExpr:
		return rootOf(e.X)
	}
	return nil
}
