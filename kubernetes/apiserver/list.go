package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// pageSize is the number of objects in a page of a list.
	pageSize = 250
	// maxPage limits a page, in bytes.
	maxPage = 512 << 20
	// listTime limits the transfer of one page.
	listTime = 2 * time.Minute
)

// List returns all objects of a kind, in all namespaces, and the revision of the list. It fails rather than return a
// part. selector is a field selector, or empty.
func (c *Client) List(ctx context.Context, k Kind, selector string) ([]*Object, string, error) {
	return c.list(ctx, k, "", selector, nil)
}

// ListIn is List for one namespace. It needs no rights in others.
func (c *Client) ListIn(ctx context.Context, k Kind, namespace string) ([]*Object, string, error) {
	return c.list(ctx, k, namespace, "", nil)
}

// list is List with a function that trims each object as it arrives; nil trims none. An empty namespace means all.
func (c *Client) list(ctx context.Context, k Kind, namespace, selector string, trim func(*Object)) ([]*Object, string, error) {
	var out []*Object
	next := ""
	for {
		query := url.Values{"limit": {strconv.Itoa(pageSize)}}
		if selector != "" {
			query.Set("fieldSelector", selector)
		}
		if next != "" {
			query.Set("continue", next)
		}
		page, err := c.page(ctx, k, namespace, query, trim)
		if err != nil {
			return nil, "", err
		}
		out = append(out, page.items...)
		if page.meta.Continue == "" {
			if page.meta.ResourceVersion == "" {
				return nil, "", fmt.Errorf("list of %s: it has no revision", k.Plural)
			}
			return out, page.meta.ResourceVersion, nil
		}
		next = page.meta.Continue
	}
}

type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

type page struct {
	meta  listMeta
	items []*Object
	trim  func(*Object)
}

func (c *Client) page(ctx context.Context, k Kind, namespace string, query url.Values, trim func(*Object)) (*page, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	answer, err := c.send(ctx, http.MethodGet, k.path(namespace, "", ""), query, "", nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	p := &page{trim: trim}
	if err := p.read(json.NewDecoder(io.LimitReader(answer.Body, maxPage))); err != nil {
		return nil, fmt.Errorf("list of %s: %w", k.Plural, err)
	}
	return p, nil
}

// read reads a list item by item, so that it is never held twice.
func (p *page) read(d *json.Decoder) error {
	if err := want(d, json.Delim('{')); err != nil {
		return err
	}
	listed := false
	for d.More() {
		field, err := d.Token()
		if err != nil {
			return err
		}
		switch field {
		case "metadata":
			err = d.Decode(&p.meta)
		case "items":
			listed = true
			err = p.readItems(d)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	if !listed {
		return fmt.Errorf("it has no items")
	}
	return want(d, json.Delim('}'))
}

func (p *page) readItems(d *json.Decoder) error {
	if err := want(d, json.Delim('[')); err != nil {
		return err
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		one, err := Parse(raw)
		if err != nil {
			return err
		}
		if p.trim != nil {
			p.trim(one)
		}
		p.items = append(p.items, one)
	}
	return want(d, json.Delim(']'))
}

func want(d *json.Decoder, token json.Token) error {
	got, err := d.Token()
	if err == nil && got != token {
		err = fmt.Errorf("want %v, got %v", token, got)
	}
	return err
}
