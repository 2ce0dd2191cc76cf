package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// API is a client of a control plane's HTTP API. It depends only on JSON, so that tests see what users see.
type API struct {
	url  string
	http *http.Client
}

// Item is a resource as lists and items show it.
type Item struct {
	Type             string            `json:"type"`
	Mesh             string            `json:"mesh"`
	Namespace        string            `json:"namespace"`
	Name             string            `json:"name"`
	Labels           map[string]string `json:"labels"`
	KRI              string            `json:"kri"`
	CreationTime     time.Time         `json:"creationTime"`
	ModificationTime time.Time         `json:"modificationTime"`
	Spec             json.RawMessage   `json:"spec"`
}

// StatusError reports a response whose status is not a success.
type StatusError struct {
	Method, URL string
	Status      int
	Body        string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %d %s", e.Method, e.URL, e.Status, e.Body)
}

const (
	requestTimeout = 15 * time.Second
	maxAnswer      = 64 << 20
)

func newAPI(url string, in *Namespace) *API {
	return &API{url: url, http: in.client()}
}

// URL returns the base address.
func (a *API) URL() string { return a.url }

// Do sends one request. body and into are JSON, both optional. A response other than 2xx is a *StatusError.
func (a *API) Do(ctx context.Context, method, path string, body, into any) error {
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return &StatusError{Method: method, URL: a.url + path, Status: resp.StatusCode, Body: string(raw)}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// Get reads a document.
func (a *API) Get(ctx context.Context, path string, into any) error {
	return a.Do(ctx, http.MethodGet, path, nil, into)
}

// Put creates or updates the resource at path.
func (a *API) Put(ctx context.Context, path string, doc any) error {
	return a.Do(ctx, http.MethodPut, path, doc, nil)
}

// Delete removes the resource at path.
func (a *API) Delete(ctx context.Context, path string) error {
	return a.Do(ctx, http.MethodDelete, path, nil, nil)
}

// List returns all items of a list, from all its pages. path may have a query.
func (a *API) List(ctx context.Context, path string) ([]Item, error) {
	u, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	q.Set("size", "1000")
	var all []Item
	for {
		u.RawQuery = q.Encode()
		var page struct {
			Items []Item  `json:"items"`
			Next  *string `json:"next"`
		}
		if err := a.Get(ctx, u.String(), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == nil {
			return all, nil
		}
		next, err := url.Parse(*page.Next)
		if err != nil || next.Query().Get("offset") == "" {
			return nil, fmt.Errorf("%s: next page is %q", path, *page.Next)
		}
		q.Set("offset", next.Query().Get("offset"))
	}
}

// fetch reads a page that is not JSON.
func fetch(ctx context.Context, url string) ([]byte, error) {
	return fetchBy(ctx, http.DefaultClient, url)
}

func fetchBy(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return raw, err
}
