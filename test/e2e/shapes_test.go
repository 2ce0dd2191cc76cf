package e2e

import (
	"encoding/json"
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

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/zone/callers"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// shapes are the types of responses, by the name of their schema in the OpenAPI document.
var shapes = map[string]any{
	"Access": callers.Answer{}, "Answer": explain.Answer{}, "AuditEntry": access.Entry{}, "AuditPage": api.AuditPage{},
	"BatchResult": api.BatchResult{}, "CanIAnswer": api.CanIAnswer{}, "CanIQuestion": api.CanIQuestion{},
	"Condition": resources.Condition{}, "DataplaneToken": api.DataplaneToken{}, "Dataplanes": inspect.Dataplanes{},
	"Deleted": api.Deleted{}, "Error": api.Error{}, "Findings": inspect.Findings{}, "Forecast": api.Forecast{},
	"GlobalInsight": api.GlobalInsight{}, "InboundPolicies": inspect.InboundPolicies{}, "Index": api.Index{},
	"JoinOffer": enrolment.JoinOffer{}, "Keys": api.SigningKeyList{}, "Layout": inspect.Layout{},
	"OutboundPolicies": inspect.OutboundPolicies{}, "PolicyTypes": api.PolicyTypes{},
	"ProxyPolicies": inspect.ProxyPolicies{}, "ProxyRules": inspect.ProxyRules{}, "Query": explain.Query{},
	"Replicas": api.ReplicaList{}, "ResourceTypes": api.ResourceTypes{}, "Rollout": tracker.Rollout{},
	"SVID": api.SVID{}, "ServicePolicies": inspect.ServicePolicies{}, "ShadowReport": api.ShadowReport{}, "DenialReport": api.DenialReport{},
	"Steered": tracker.Steered{}, "Suggestion": api.Suggestion{}, "SyncStatus": tracker.SyncStatus{},
	"TokenOffer": enrolment.TokenOffer{}, "Trust": api.Trust{}, "UserTokenRequest": api.UserTokenRequest{},
	"WhoAmI": api.WhoAmI{}, "Written": api.Written{}, "ZoneCandidate": enrolment.Candidate{},
	"ZoneCredentials": enrolment.Credentials{}, "ZoneDeleted": enrolment.Deleted{},
	"ZoneEnabled": enrolment.Enabled{}, "ZoneRevoked": enrolment.Revoked{},
}

// ofResources are the schemas of resources and of lists of them, whose fields depend on the type.
var ofResources = []string{"Document", "Overview", "Overviews", "Resource", "Resources"}

// bodies are the types of request bodies without a name in the document.
var bodies = map[string]any{
	"/meshes/{mesh}/dataplanes/{name}/_svid": api.SVIDRequest{},
	"/meshes/{mesh}/_dataplane-tokens":       api.DataplaneTokenRequest{},
	"/_dataplane-tokens/_revoke":             api.DataplaneTokenRevocation{},
	"/zones/{name}/_join":                    enrolment.JoinOrder{},
	"/zones/{name}/_token":                   enrolment.TokenOrder{},
	"/zones/{name}/_adopt":                   enrolment.AdoptOrder{},
}

// TestDocumentHasAllFields checks that the document and the types of responses and bodies have the same fields, also
// rare ones, and that each schema of the document has a type.
func TestDocumentHasAllFields(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(inspect.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	c := &fieldCheck{t: t, seen: map[*openapi3.Schema]bool{}}
	for name, of := range shapes {
		schema := doc.Components.Schemas[name]
		if schema == nil {
			t.Errorf("no schema %s", name)
			continue
		}
		c.same(name, reflect.TypeOf(of), schema.Value)
	}
	for path, of := range bodies {
		body := doc.Paths.Value(path).Post.RequestBody.Value.Content.Get("application/json")
		c.same(path, reflect.TypeOf(of), body.Schema.Value)
	}
	for name, schema := range doc.Components.Schemas {
		if len(schema.Value.Properties) > 0 && !c.seen[schema.Value] && !slices.Contains(ofResources, name) {
			t.Errorf("no type is known for the schema %s", name)
		}
	}
}

// marshals are types that write their own JSON, such as times.
var marshals = reflect.TypeFor[json.Marshaler]()

// fieldCheck compares types with schemas, and notes the schemas.
type fieldCheck struct {
	t    *testing.T
	seen map[*openapi3.Schema]bool
}

// same compares a type's JSON fields with those of a schema, recursively.
func (c *fieldCheck) same(path string, typ reflect.Type, schema *openapi3.Schema) {
	c.t.Helper()
	for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
		if typ.Implements(marshals) || reflect.PointerTo(typ).Implements(marshals) {
			return
		}
		if typ.Kind() == reflect.Slice {
			if schema.Items == nil {
				c.t.Errorf("%s: the document does not say of what the list is", path)
				return
			}
			schema = schema.Items.Value
		}
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.Implements(marshals) || reflect.PointerTo(typ).Implements(marshals) {
		return
	}
	c.seen[schema] = true
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" || field.Anonymous && name == "" {
			continue
		}
		fields[name] = field.Type
		property := schema.Properties[name]
		if property == nil {
			c.t.Errorf("%s: the document has no %s", path, name)
			continue
		}
		c.same(path+"."+name, field.Type, property.Value)
	}
	for name := range schema.Properties {
		if fields[name] == nil {
			c.t.Errorf("%s: nothing answers with %s", path, name)
		}
	}
}

// declaration is a struct type with JSON fields.
type declaration struct {
	folder, at string
	fields     []string
}

// object has the fields of any object of Kubernetes, of which each package declares what it reads.
var object = []string{"metadata", "spec"}

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
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := declarations(t, root)
	if len(all) < 200 {
		t.Errorf("found only %d structs with JSON fields: does this test still read the sources rightly?", len(all))
	}
	for i, one := range all {
		for _, other := range all[i+1:] {
			if one.folder != other.folder && slices.Equal(one.fields, other.fields) && !slices.Equal(one.fields, object) &&
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
