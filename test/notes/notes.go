// Package notes reads the comments of the types that documents decode into, for the programs that write the reference
// and the CustomResourceDefinitions from them.
package notes

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

// Notes are the comments in the sources, each on one line.
type Notes struct {
	// Types has the comments of types by name, Fields those of fields by resources.Field.Origin.
	Types, Fields map[string]string
}

var protoName = regexp.MustCompile(`\bname=(\w+)`)

// Read reads the comments of the structs that specs are decoded into. root is the root of the repository.
func Read(root string) (*Notes, error) {
	n := &Notes{Types: map[string]string{}, Fields: map[string]string{}}
	for _, dir := range []string{"resources", "resources/proxypatch", "resources/meshpb", "resources/systempb"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			n.read(file)
		}
	}
	return n, nil
}

func (n *Notes) read(file *ast.File) {
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			t := spec.(*ast.TypeSpec)
			fields, ok := t.Type.(*ast.StructType)
			if !ok {
				continue
			}
			n.Types[t.Name.Name] = oneLine(group.Doc)
			for _, f := range fields.Fields.List {
				n.readField(t.Name.Name, f)
			}
		}
	}
}

func (n *Notes) readField(owner string, f *ast.Field) {
	about := oneLine(f.Doc)
	if about == "" {
		about = oneLine(f.Comment)
	}
	names := make([]string, 0, len(f.Names))
	for _, name := range f.Names {
		names = append(names, name.Name)
	}
	if f.Tag != nil {
		if m := protoName.FindStringSubmatch(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("protobuf")); m != nil {
			names = append(names, m[1])
		}
	}
	for _, name := range names {
		n.Fields[owner+"."+name] = about
	}
}

// source matches the sentence of a comment that names the source of a rule, because readers of the reference do not
// have it.
var source = regexp.MustCompile(`\s*(Source: |\(seed |\(design)[^.]*\.?\)?`)

func oneLine(c *ast.CommentGroup) string {
	return strings.TrimSpace(source.ReplaceAllString(strings.Join(strings.Fields(c.Text()), " "), ""))
}
