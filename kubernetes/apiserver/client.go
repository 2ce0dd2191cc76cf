package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Config configures Connect.
type Config struct {
	// Kubeconfig is a kubeconfig file; the pod's service account if it is empty.
	Kubeconfig string
	// UserAgent names the caller to the API server.
	UserAgent string
	// RequestsPerSecond limits the requests; 100 when zero. A watch counts when it begins.
	RequestsPerSecond float64
	// Held, if set, is called before each request that writes. Its error refuses the request.
	Held func() error
}

const (
	defaultRequests = 100
	// requestTime limits a request that is not a watch.
	requestTime = 30 * time.Second
	// dialTime limits the setup of a connection, including TLS.
	dialTime = 10 * time.Second
	// maxAnswer limits a response that is read as a whole. An object in etcd has at most 1.5 MiB.
	maxAnswer = 16 << 20
	// accepted lists the content types of responses. The API server refuses its keys to a client that does not name
	// their type.
	accepted = "application/json, application/jwk-set+json"
	// tokenAge is how long a token that was read from a file is used.
	tokenAge = time.Minute
)

// Client is a client of an API server. It is safe for concurrent use.
type Client struct {
	server, agent string
	http          *http.Client
	limit         *rate.Limiter
	access        *access
	held          func() error

	mu    sync.Mutex
	token string    // guarded by mu
	read  time.Time // guarded by mu: when token was read
}

// Connect returns a client. It sends no request.
func Connect(c Config) (*Client, error) {
	a, err := inClusterOr(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if c.RequestsPerSecond <= 0 {
		c.RequestsPerSecond = defaultRequests
	}
	transport := &http.Transport{
		TLSClientConfig: a.tls, DialTLSContext: a.dial, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment,
		TLSHandshakeTimeout: dialTime, IdleConnTimeout: 90 * time.Second,
		// Detects a dead connection, although a watch may be silent for minutes.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 10 * time.Second},
	}
	return &Client{server: strings.TrimSuffix(a.server, "/"), agent: c.UserAgent, http: &http.Client{Transport: transport, CheckRedirect: stay},
		limit: rate.NewLimiter(rate.Limit(c.RequestsPerSecond), int(c.RequestsPerSecond)), access: a, held: c.Held}, nil
}

// stay refuses redirects: another server must not get the credential.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func inClusterOr(kubeconfig string) (*access, error) {
	if kubeconfig == "" {
		return inCluster()
	}
	return fromKubeconfig(kubeconfig)
}

// Server is the URL of the API server.
func (c *Client) Server() string { return c.server }

// Get returns one object.
func (c *Client) Get(ctx context.Context, k Kind, n Name) (*Object, error) {
	return c.one(ctx, http.MethodGet, k.path(n.Namespace, n.Name, ""), "", nil)
}

// Create creates an object and returns it as stored.
func (c *Client) Create(ctx context.Context, k Kind, namespace string, document []byte) (*Object, error) {
	return c.one(ctx, http.MethodPost, k.path(namespace, "", ""), "application/json", document)
}

// Replace replaces an object. The document has the resourceVersion of the object that it replaces.
func (c *Client) Replace(ctx context.Context, k Kind, n Name, document []byte) (*Object, error) {
	return c.one(ctx, http.MethodPut, k.path(n.Namespace, n.Name, ""), "application/json", document)
}

// Patch merges a document into an object, by the rules of RFC 7386, or into its subresource if that is not empty.
func (c *Client) Patch(ctx context.Context, k Kind, n Name, subresource string, document []byte) (*Object, error) {
	return c.one(ctx, http.MethodPatch, k.path(n.Namespace, n.Name, subresource), "application/merge-patch+json", document)
}

// Delete deletes the object with this UID.
func (c *Client) Delete(ctx context.Context, k Kind, n Name, uid string) error {
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "DeleteOptions",
		"preconditions": map[string]string{"uid": uid}})
	if err != nil {
		return err
	}
	_, err = c.whole(ctx, http.MethodDelete, k.path(n.Namespace, n.Name, ""), "application/json", body)
	return err
}

// WhoAmI returns the name by which the API server knows this client.
func (c *Client) WhoAmI(ctx context.Context) (string, error) {
	raw, err := c.whole(ctx, http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", "application/json",
		[]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`))
	if err != nil {
		return "", err
	}
	var review struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	err = json.Unmarshal(raw, &review)
	return review.Status.UserInfo.Username, err
}

func (c *Client) one(ctx context.Context, method, path, contentType string, body []byte) (*Object, error) {
	raw, err := c.whole(ctx, method, path, contentType, body)
	if err != nil {
		return nil, err
	}
	return Parse(raw)
}

// whole sends a request and reads the whole response.
func (c *Client) whole(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	answer, err := c.send(ctx, method, path, nil, contentType, body)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return readAll(answer.Body)
}

func readAll(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err == nil && len(raw) > maxAnswer {
		err = fmt.Errorf("the Kubernetes API server answers with more than %d bytes", maxAnswer)
	}
	return raw, err
}

// send sends a request and returns a successful response. The caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, contentType string,
	body []byte) (*http.Response, error) {
	if err := c.limit.Wait(ctx); err != nil {
		return nil, err
	}
	address := c.server + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accepted)
	r.Header.Set("User-Agent", c.agent)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	token, err := c.credential()
	if err != nil {
		return nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if c.held != nil && method != http.MethodGet {
		if err := c.held(); err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		defer answer.Body.Close()
		raw, _ := readAll(answer.Body)
		return nil, errorOf(answer.StatusCode, raw)
	}
	return answer, nil
}

// credential returns the bearer token, empty if a client certificate authenticates the caller.
func (c *Client) credential() (string, error) {
	if c.access.tokenFile == "" {
		return c.access.token, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != "" && time.Since(c.read) < tokenAge {
		return c.token, nil
	}
	raw, err := os.ReadFile(c.access.tokenFile)
	if err != nil {
		return "", fmt.Errorf("token for the Kubernetes API server: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", fmt.Errorf("token for the Kubernetes API server: %s is empty", c.access.tokenFile)
	}
	c.token, c.read = token, time.Now()
	return c.token, nil
}

// Apply creates an object, or merges a document into it, by server-side apply. Unlike Create, it needs no right to
// create objects of any name. It fails with a conflict if the object has other values that another manager set.
func (c *Client) Apply(ctx context.Context, k Kind, n Name, manager string, document []byte) (*Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	answer, err := c.send(ctx, http.MethodPatch, k.path(n.Namespace, n.Name, ""), url.Values{"fieldManager": {manager}},
		"application/apply-patch+yaml", document)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	raw, err := readAll(answer.Body)
	if err != nil {
		return nil, err
	}
	return Parse(raw)
}
