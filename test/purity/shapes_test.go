package purity

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declaration is a struct type with JSON fields.
type declaration struct {
	folder, at string
	fields     []string
}

// objects have the fields of any object of Kubernetes, of which each package declares what it reads.
var objects = [][]string{{"metadata", "spec"}, {"metadata", "status"}}

func isObject(one declaration) bool {
	return slices.ContainsFunc(objects, func(object []string) bool { return slices.Equal(one.fields, object) })
}

// partsOfPods are shapes of a pod's specification, of which packages below kubernetes declare what they read. That the
// header of a probe has the fields of another header is chance.
var partsOfPods = [][]string{{"containerPort", "name", "protocol"}, {"name", "value"}}

func isPartOfPods(one declaration) bool {
	return strings.HasPrefix(one.folder, "kubernetes/") &&
		slices.ContainsFunc(partsOfPods, func(part []string) bool { return slices.Equal(one.fields, part) })
}

// TestShapesAreDeclaredOnce checks that no two packages declare structs with the same JSON fields, and that the command
// line declares no part of what a server answers. Tests and what is in the folders test and deploy are programs of their
// own.
func TestShapesAreDeclaredOnce(t *testing.T) {
	t.Parallel()
	all := declarations(t, root)
	if len(all) < 200 {
		t.Errorf("found only %d structs with JSON fields: does this test still read the sources rightly?", len(all))
	}
	for i, one := range all {
		for _, other := range all[i+1:] {
			if one.folder != other.folder && slices.Equal(one.fields, other.fields) && !isObject(one) &&
				!isPartOfPods(one) && !isPartOfPods(other) {
				t.Errorf("%s and %s declare the same fields: %s", one.at, other.at, strings.Join(one.fields, ", "))
			}
		}
		if one.folder == "cmd/causewayctl" {
			checkParts(t, one, all)
		}
	}
}

// shownParts are structs of the command line for its own output, which has some fields of a response.
var shownParts = []string{"hostname,product,version"}

// checkParts reports a struct of the command line whose fields are some of those of a response.
func checkParts(t *testing.T, one declaration, all []declaration) {
	if slices.Contains(shownParts, strings.Join(one.fields, ",")) {
		return
	}
	for _, other := range all {
		answers := other.folder != "resources" && other.folder != one.folder
		missing := slices.ContainsFunc(one.fields, func(f string) bool { return !slices.Contains(other.fields, f) })
		if answers && !missing && len(one.fields) > 2 {
			t.Errorf("%s declares a part of %s: %s", one.at, other.at, strings.Join(one.fields, ", "))
		}
	}
}

// declarations returns the structs with at least two JSON fields of all packages.
func declarations(t *testing.T, root string) []declaration {
	t.Helper()
	var all []declaration
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == filepath.Join(root, "test") || path == filepath.Join(root, "deploy") ||
			path != root && strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".pb.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				if fields := jsonFields(s); len(fields) > 1 {
					at := fmt.Sprintf("%s/%s:%d", folder, name, files.Position(s.Pos()).Line)
					all = append(all, declaration{filepath.ToSlash(folder), at, fields})
				}
			}
			return true
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// jsonFields returns the names of a struct's own JSON fields, sorted.
func jsonFields(s *ast.StructType) []string {
	var names []string
	for _, field := range s.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); err == nil && name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
