package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// ItemPath returns the path of one resource. Its namespace is in the query.
func ItemPath(k resources.Key) (string, url.Values, error) {
	path, err := listPath(k.Type, k.Mesh)
	if err != nil {
		return "", nil, err
	}
	q := url.Values{}
	if k.Namespace != "" {
		q.Set("namespace", k.Namespace)
	}
	return path + "/" + url.PathEscape(k.Name), q, nil
}

func listPath(t resources.Type, mesh string) (string, error) {
	d, ok := resources.Lookup(t)
	if !ok {
		return "", fmt.Errorf("%w: %q", resources.ErrUnknownType, t)
	}
	if mesh == "" {
		return "/" + d.Path, nil
	}
	return "/meshes/" + url.PathEscape(mesh) + "/" + d.Path, nil
}

// Apply stores all resources or none, in one request.
func (c *Client) Apply(ctx context.Context, all ...*resources.Resource) (*BatchResult, error) {
	return c.ApplyDocuments(ctx, documentsOf(all), "application/json")
}

// documentsOf returns the body of a request with several resources.
func documentsOf(all []*resources.Resource) []byte {
	var body []byte
	for _, r := range all {
		body = append(resources.AppendUniversal(body, r), '\n')
	}
	return body
}

// PutIf stores one resource if the stored one still has the tag that Tagged returned. Otherwise the error has the
// status 412.
func (c *Client) PutIf(ctx context.Context, r *resources.Resource, tag string) (*Written, error) {
	path, query, err := ItemPath(r.Key)
	if err != nil {
		return nil, err
	}
	out := &Written{}
	return out, c.JSON(ctx, Request{Method: http.MethodPut, Path: path, Query: query,
		Body: resources.AppendUniversal(nil, r), IfMatch: tag}, out)
}

// DryRun makes the server evaluate a write of all resources without storing them. It fails with the errors that a write
// would get.
func (c *Client) DryRun(ctx context.Context, all ...*resources.Resource) (*Forecast, error) {
	out := &Forecast{}
	r := Request{Method: http.MethodPost, Path: "/_batch", Query: url.Values{dryRunQuery: {dryRunServer}},
		Body: documentsOf(all)}
	if err := c.JSON(ctx, r, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ApplyDocuments sends documents unmodified in one request. contentType is that of JSON or YAML.
func (c *Client) ApplyDocuments(ctx context.Context, body []byte, contentType string) (*BatchResult, error) {
	out := &BatchResult{}
	r := Request{Method: http.MethodPost, Path: "/_batch", Body: body, ContentType: contentType}
	if err := c.JSON(ctx, r, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Get returns one resource, without its revision. If the resource does not exist, the error has the status 404:
// IsNotFound.
func (c *Client) Get(ctx context.Context, k resources.Key) (*resources.Resource, error) {
	path, query, err := ItemPath(k)
	if err != nil {
		return nil, err
	}
	raw, err := c.Do(ctx, Request{Path: path, Query: query})
	if err != nil {
		return nil, err
	}
	return decodeItem(raw)
}

// decodeItem decodes a resource in the form that servers show.
func decodeItem(raw []byte) (*resources.Resource, error) {
	docs, err := resources.DecodeDocuments(raw, resources.DecodeOptions{Format: resources.FormatJSON})
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("the response has %d resources, want one", len(docs))
	}
	var shown struct {
		CreationTime, ModificationTime time.Time
		Status                         json.RawMessage
	}
	if err := json.Unmarshal(raw, &shown); err != nil {
		return nil, err
	}
	r := docs[0]
	r.CreationTime, r.ModificationTime = shown.CreationTime, shown.ModificationTime
	if len(shown.Status) > 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, shown.Status); err != nil {
			return nil, err
		}
		r.Status = compact.Bytes()
	}
	return r, nil
}

// ListOptions select the resources that List returns. Empty fields select everything.
type ListOptions struct {
	Type resources.Type
	Mesh string
	// Name is a substring of the name.
	Name string
	// Namespace, if not nil, selects that namespace. "" selects resources without one.
	Namespace *string
	Labels    map[string]string
}

// List returns all resources that match o, page by page.
func (c *Client) List(ctx context.Context, o ListOptions) ([]*resources.Resource, error) {
	path, err := listPath(o.Type, o.Mesh)
	if err != nil {
		return nil, err
	}
	q := url.Values{"size": {strconv.Itoa(maxPageSize)}}
	if o.Name != "" {
		q.Set("name", o.Name)
	}
	if o.Namespace != nil {
		q.Set("namespace", *o.Namespace)
	}
	for k, v := range o.Labels {
		q.Set("filter[labels."+k+"]", v)
	}
	var out []*resources.Resource
	for {
		var page struct {
			Total int
			Items []json.RawMessage
			Next  *string
		}
		if err := c.JSON(ctx, Request{Path: path, Query: q}, &page); err != nil {
			return nil, err
		}
		for _, raw := range page.Items {
			r, err := decodeItem(raw)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		if page.Next == nil || len(page.Items) == 0 {
			return out, nil
		}
		next, err := url.Parse(*page.Next)
		if err != nil || next.Query().Get("offset") == "" {
			return nil, fmt.Errorf("the server's link to the next page is %q, which has no offset", *page.Next)
		}
		q.Set("offset", next.Query().Get("offset"))
	}
}

// Delete removes one resource.
func (c *Client) Delete(ctx context.Context, k resources.Key) error {
	path, query, err := ItemPath(k)
	if err != nil {
		return err
	}
	return c.JSON(ctx, Request{Method: http.MethodDelete, Path: path, Query: query}, nil)
}

// IsNotFound reports whether err is a server's 404.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}
