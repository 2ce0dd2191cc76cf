package kubernetes

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// configMaps is the kind of ConfigMaps.
var configMaps = apiserver.Kind{Version: "v1", Plural: "configmaps", Name: "ConfigMap", Namespaced: true}

// authorityKey is the key of the CA in its ConfigMap.
const authorityKey = "ca.crt"

// publishAuthority keeps the CA of the xDS server in a ConfigMap of the system namespace until ctx ends. Pods that the
// chart starts mount it, and wait for it.
func (b *Bridge) publishAuthority(ctx context.Context) error {
	id := apiserver.Name{Namespace: systemNamespace(b.Home), Name: b.Settings.AuthorityConfigMap}
	k := &kept{bridge: b, kind: configMaps, id: id, what: "the ConfigMap with the CA of the xDS server",
		tend: func(ctx context.Context, o *apiserver.Object) error { return b.tendAuthority(ctx, id, o) }}
	return k.keep(ctx)
}

// tendAuthority writes the CA, if the ConfigMap has another or does not exist.
func (b *Bridge) tendAuthority(ctx context.Context, id apiserver.Name, o *apiserver.Object) error {
	want := string(b.Authority())
	if want == "" {
		return errors.New("the xDS server has no certificate, because it is on loopback: other pods do not reach it")
	}
	var has struct {
		Data map[string]string `json:"data"`
	}
	if o != nil {
		if err := json.Unmarshal(o.Raw, &has); err != nil {
			return err
		}
		if has.Data[authorityKey] == want {
			return nil
		}
	}
	document := map[string]any{"data": map[string]string{authorityKey: want}}
	if o == nil {
		document["apiVersion"], document["kind"] = configMaps.APIVersion(), configMaps.Name
		document["metadata"] = map[string]any{"name": id.Name, "namespace": id.Namespace,
			"labels": map[string]string{"app.kubernetes.io/managed-by": "causeway", "app.kubernetes.io/part-of": "causeway"}}
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if o == nil { // not Create: a role cannot name what it creates
		_, err = b.Client.Apply(ctx, configMaps, id, "causeway-zone", raw)
	} else {
		_, err = b.Client.Patch(ctx, configMaps, id, "", raw)
	}
	return err
}
