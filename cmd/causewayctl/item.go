package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// item is a resource in the form of the HTTP API.
type item struct {
	Type             resources.Type    `json:"type"`
	Mesh             string            `json:"mesh"`
	Namespace        string            `json:"namespace"`
	Name             string            `json:"name"`
	Labels           map[string]string `json:"labels"`
	KRI              string            `json:"kri"`
	CreationTime     time.Time         `json:"creationTime"`
	ModificationTime time.Time         `json:"modificationTime"`
	Spec             struct {
		TargetRef *resources.TargetRef `json:"targetRef"`
		// Destination is the destination of a TrafficTarget.
		Destination resources.TrafficSubject `json:"destination"`
	} `json:"spec"`
	// tag is the entity tag, set by fetchTagged.
	tag string
	// whole is the document as received. -o json and yaml print it.
	whole json.RawMessage
}

// UnmarshalJSON keeps the whole document beside the fields that tables need.
func (it *item) UnmarshalJSON(raw []byte) error {
	type fields item
	if err := json.Unmarshal(raw, (*fields)(it)); err != nil {
		return err
	}
	it.whole = append(json.RawMessage(nil), raw...)
	return nil
}

func (it *item) key() resources.Key {
	return resources.Key{Type: it.Type, Mesh: it.Mesh, Namespace: it.Namespace, Name: it.Name}
}

// written returns what was written, and when: the document without its status, which changes by itself.
func (it *item) written() string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(it.whole, &fields) != nil {
		return string(it.whole)
	}
	delete(fields, "status")
	raw, err := json.Marshal(fields)
	if err != nil {
		return string(it.whole)
	}
	return string(raw)
}

// addStatus adds a field to the status of the document, whose fields stay in their order.
func (it *item) addStatus(name string, value any) error {
	status := map[string]any{}
	var fields []string
	in := json.NewDecoder(bytes.NewReader(it.whole))
	if _, err := in.Token(); err != nil {
		return err
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		var field json.RawMessage
		if err := in.Decode(&field); err != nil {
			return err
		}
		if key == "status" {
			if err := json.Unmarshal(field, &status); err != nil {
				return err
			}
			continue
		}
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		fields = append(fields, string(name)+":"+string(field))
	}
	status[name] = value
	raw, err := json.Marshal(status)
	if err != nil {
		return err
	}
	it.whole = json.RawMessage("{" + strings.Join(append(fields, `"status":`+string(raw)), ",") + "}")
	return nil
}

// origin returns the zone that the resource was written in, or "global".
func (it *item) origin() string {
	if zone := it.Labels[resources.LabelZone]; zone != "" {
		return zone
	}
	return it.Labels[resources.LabelOrigin]
}

// displayName returns the name on the origin, if it differs from the name here.
func (it *item) displayName() string {
	if name := it.Labels[resources.LabelDisplayName]; name != it.Name {
		return name
	}
	return ""
}

// listQuery selects resources of one type. An empty mesh means all meshes, an empty namespace all namespaces.
type listQuery struct {
	descriptor      *resources.Descriptor
	mesh, namespace string
	labels          map[string]string
	// explicit requests the defaults that specs omit.
	explicit bool
}

// listPath returns the path of the resources of one type, in one mesh, or in all if mesh is empty.
func listPath(d *resources.Descriptor, mesh string) string {
	if d.Scope == resources.ScopeMesh && mesh != "" {
		return "/meshes/" + url.PathEscape(mesh) + "/" + d.Path
	}
	return "/" + d.Path
}

// fetchItem reads one resource. Its error names the resource.
func fetchItem(ctx context.Context, client *api.Client, key resources.Key) (*item, error) {
	it := &item{}
	if err := fetch(ctx, client, key, "", it); err != nil {
		return nil, aboutResource(key, err)
	}
	return it, nil
}

// The query parameter that requests the defaults that specs omit.
const (
	formParameter = "form"
	formExplicit  = "explicit"
)

// fetchExplicit reads one resource with the defaults that its spec omits.
func fetchExplicit(ctx context.Context, client *api.Client, key resources.Key) (*item, error) {
	path, query, err := api.ItemPath(key)
	if err != nil {
		return nil, err
	}
	query.Set(formParameter, formExplicit)
	it := &item{}
	if err := client.JSON(ctx, api.Request{Path: path, Query: query}, it); err != nil {
		return nil, aboutResource(key, err)
	}
	return it, nil
}

// fetch reads one resource, or the path below it, into the given value.
func fetch(ctx context.Context, client *api.Client, key resources.Key, below string, into any) error {
	path, query, err := api.ItemPath(key)
	if err != nil {
		return err
	}
	return client.JSON(ctx, api.Request{Path: path + below, Query: query}, into)
}

// pageSize is the number of resources per request.
const pageSize = 1000

// listItems fetches all resources that q selects.
func listItems(ctx context.Context, client *api.Client, q listQuery) ([]*item, error) {
	return listAll[item](ctx, client, listPath(q.descriptor, q.mesh), q)
}

// listAll fetches all pages of the list at a path.
func listAll[T any](ctx context.Context, client *api.Client, path string, q listQuery) ([]*T, error) {
	var all []*T
	for offset := ""; ; {
		var page struct {
			Items []*T    `json:"items"`
			Next  *string `json:"next"`
		}
		r := api.Request{Path: path, Query: q.values(offset)}
		if err := client.JSON(ctx, r, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == nil || len(page.Items) == 0 {
			return all, nil
		}
		next, err := nextOffset(*page.Next)
		if err != nil {
			return nil, err
		}
		offset = next
	}
}

func (q listQuery) values(offset string) url.Values {
	v := url.Values{"size": {strconv.Itoa(pageSize)}}
	if offset != "" {
		v.Set("offset", offset)
	}
	if q.namespace != "" {
		v.Set("namespace", q.namespace)
	}
	if q.explicit {
		v.Set(formParameter, formExplicit)
	}
	for key, value := range q.labels {
		v.Set("filter[labels."+key+"]", value)
	}
	return v
}

// nextOffset returns the offset in the URL of the next page. It ignores the host, which may be the server's own name
// for itself.
func nextOffset(next string) (string, error) {
	u, err := url.Parse(next)
	if err != nil || u.Query().Get("offset") == "" {
		return "", fmt.Errorf("the server's link to the next page is %q, which has no offset", next)
	}
	return u.Query().Get("offset"), nil
}

// wholes returns the items' documents as received.
func wholes(items []*item) []json.RawMessage {
	out := make([]json.RawMessage, len(items))
	for i, it := range items {
		out[i] = it.whole
	}
	return out
}
