package e2e

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
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
