package kubernetes

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// configurationKinds are the kinds that register a webhook with the API server.
var configurationKinds = []apiserver.Kind{
	{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "mutatingwebhookconfigurations",
		Name: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "validatingwebhookconfigurations",
		Name: "ValidatingWebhookConfiguration"},
}

// tendConfigurations keeps the CA and the secret path in the webhook configurations current, and the certificate valid,
// until ctx ends.
func (b *Bridge) tendConfigurations(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, kind := range configurationKinds {
		k := &kept{bridge: b, kind: kind, id: apiserver.Name{Name: b.Settings.WebhookConfiguration},
			what:   "the configuration of the webhook",
			absent: "invalid objects are noticed only after they are stored",
			tend:   func(ctx context.Context, o *apiserver.Object) error { return b.tend(ctx, kind, o) }}
		group.Go(func() error { return k.keep(ctx) })
	}
	return group.Wait()
}

// tend makes the certificate cover the names that a configuration calls, and the configuration trust the certificate.
func (b *Bridge) tend(ctx context.Context, kind apiserver.Kind, o *apiserver.Object) error {
	if o == nil {
		return b.Serving.cover(nil)
	}
	_, hosts, _, err := trusting(o.Raw, nil, b.Serving.secret)
	if err == nil {
		err = b.Serving.cover(hosts) // first: it may create another CA
	}
	if err != nil {
		return err
	}
	webhooks, _, differs, err := trusting(o.Raw, b.Serving.caPEM(), b.Serving.secret)
	if err != nil || !differs {
		return err
	}
	patch, err := json.Marshal(map[string]any{"webhooks": webhooks,
		"metadata": map[string]string{"resourceVersion": o.Meta.ResourceVersion}})
	if err != nil {
		return err
	}
	_, err = b.Client.Patch(ctx, kind, o.ID(), "", patch)
	if err == nil {
		b.Log.Info("the API server trusts the webhook", "kind", kind.Name, "name", o.Meta.Name)
	}
	return err
}

// trusting returns the webhooks of a configuration with the CA and the secret path, the hosts that they call, and
// whether they changed.
func trusting(raw, ca []byte, secret string) (webhooks []map[string]any, hosts []string, differs bool, err error) {
	var configuration struct {
		Webhooks []map[string]any `json:"webhooks"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&configuration); err != nil {
		return nil, nil, false, err
	}
	bundle := base64.StdEncoding.EncodeToString(ca)
	for i, w := range configuration.Webhooks {
		client, ok := w["clientConfig"].(map[string]any)
		if !ok {
			return nil, nil, false, fmt.Errorf("webhooks[%d] has no clientConfig", i)
		}
		host, changed, err := trust(client, bundle, secret)
		if err != nil {
			return nil, nil, false, fmt.Errorf("webhooks[%d].clientConfig: %w", i, err)
		}
		hosts, differs = append(hosts, host), differs || changed
	}
	return configuration.Webhooks, hosts, differs, nil
}

// trust completes one clientConfig, and returns the host that it calls.
func trust(client map[string]any, bundle, secret string) (host string, changed bool, err error) {
	if client["caBundle"] != bundle {
		client["caBundle"], changed = bundle, true
	}
	if service, ok := client["service"].(map[string]any); ok {
		path, _ := service["path"].(string)
		if with := secretPath(path, secret); with != path {
			service["path"], changed = with, true
		}
		return fmt.Sprintf("%v.%v.svc", service["name"], service["namespace"]), changed, nil
	}
	text, _ := client["url"].(string)
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", false, fmt.Errorf("it has neither a service nor a URL")
	}
	if with := secretPath(u.Path, secret); with != u.Path {
		u.Path, changed = with, true
		client["url"] = u.String()
	}
	return u.Hostname(), changed, nil
}

// secretPath returns a path of the webhook with its secret part.
func secretPath(path, secret string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return "/" + first + "/" + secret
}
