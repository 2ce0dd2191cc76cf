package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ServerHeader is in every response of a server, with its mode.
const ServerHeader = "Causeway-Server"

// ErrAnotherServer reports that something else than a Causeway server responded. Whether it did anything is unknown.
var ErrAnotherServer = errors.New("this is not a Causeway server: its response means nothing, and nothing is known; check the address, and what is in front of the server")

// mode returns the server's mode.
func (s *Server) mode() string {
	if s.config.Home.Zone != "" {
		return ModeZone
	}
	return ModeGlobal
}

// recognise fails if a response that would be believed, a success or that something does not exist, is not from a
// Causeway server: another program may listen at the address, or a proxy or a portal respond in its place. Servers of
// earlier versions do not send the header. They are asked for their product, once.
func (c *Client) recognise(ctx context.Context, resp *http.Response) error {
	believed := resp.StatusCode < http.StatusMultipleChoices || resp.StatusCode == http.StatusNotFound
	if !believed || c.config.Diagnostics || resp.Header.Get(ServerHeader) != "" || c.earlier.Load() {
		return nil
	}
	req, err := c.request(ctx, Request{Path: "/"})
	if err != nil {
		return err
	}
	index, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", c.base.Host, err)
	}
	defer index.Body.Close()
	raw, err := c.read(index)
	var answer Index
	if err != nil || index.Header.Get(ServerHeader) != "" || json.Unmarshal(raw, &answer) != nil || answer.Product != Product {
		return fmt.Errorf("%s (status %d): %w", c.base.Host, resp.StatusCode, ErrAnotherServer)
	}
	c.earlier.Store(true)
	return nil
}
