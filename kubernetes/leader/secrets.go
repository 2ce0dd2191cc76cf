package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// vault reads and writes the Secrets. One goroutine at a time uses a name.
type vault struct {
	client    *apiserver.Client
	box       sealer
	namespace string
	prefix    string
	manager   string
	// patience limits one request. A lead that ends meanwhile ends it too.
	patience time.Duration
}

type sealer interface {
	Seal(plain []byte, purpose string) ([]byte, error)
	Open(sealed []byte, purpose string) ([]byte, error)
}

// dataKey is the key of the sealed bytes in a Secret.
const dataKey = "sealed"

// secretObject is the part of a Secret that is used.
type secretObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string            `json:"name"`
		Namespace       string            `json:"namespace"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Labels          map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Type string            `json:"type,omitempty"`
	Data map[string][]byte `json:"data"`
}

func (v *vault) name(suffix string) apiserver.Name {
	return apiserver.Name{Namespace: v.namespace, Name: v.prefix + "-" + suffix}
}

// errForeign reports a Secret that no replica with this key has written.
var errForeign = errors.New("a Secret that the replicas share cannot be opened")

// get returns the content of a Secret and its version. With errGone and errForeign, it returns the version too.
func (v *vault) get(ctx context.Context, suffix string) (plain []byte, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, v.patience)
	defer cancel()
	name := v.name(suffix)
	o, err := v.client.Get(ctx, secret, name)
	if apiserver.IsNotFound(err) {
		return nil, "", fmt.Errorf("%w: %s", errGone, name)
	}
	if err != nil {
		return nil, "", fmt.Errorf("secret %s: %w", name, err)
	}
	var read secretObject
	if err := json.Unmarshal(o.Raw, &read); err != nil {
		return nil, "", fmt.Errorf("secret %s: %w", name, err)
	}
	if len(read.Data[dataKey]) == 0 {
		return nil, read.Metadata.ResourceVersion, fmt.Errorf("%w: %s is empty", errGone, name)
	}
	plain, err = v.box.Open(read.Data[dataKey], v.purpose(suffix))
	if err != nil {
		return nil, read.Metadata.ResourceVersion, fmt.Errorf("%w: %s: %w", errForeign, name, err)
	}
	return plain, read.Metadata.ResourceVersion, nil
}

// purpose binds sealed bytes to their Secret.
func (v *vault) purpose(suffix string) string { return "replicas " + suffix }

// put stores the content of a Secret over a version, which is empty if there is none, and returns the new one. It fails
// with a conflict if there is another.
func (v *vault) put(ctx context.Context, suffix string, plain []byte, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, v.patience)
	defer cancel()
	sealed, err := v.box.Seal(plain, v.purpose(suffix))
	if err != nil {
		return "", err
	}
	name := v.name(suffix)
	if len(sealed) > maxSecret {
		return "", fmt.Errorf("secret %s: it would have %d bytes, and holds %d: %w", name, len(sealed), maxSecret, errFull)
	}
	o := secretObject{APIVersion: secret.APIVersion(), Kind: secret.Name, Type: "Opaque", Data: map[string][]byte{dataKey: sealed}}
	o.Metadata.Name, o.Metadata.Namespace, o.Metadata.ResourceVersion = name.Name, name.Namespace, version
	o.Metadata.Labels = map[string]string{"app.kubernetes.io/managed-by": "causeway", "app.kubernetes.io/part-of": v.prefix}
	document, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	var stored *apiserver.Object
	if version == "" {
		// Not Create: a role cannot name what it creates, and who may create any Secret may get the token of any account.
		stored, err = v.client.Apply(ctx, secret, name, v.manager, document)
	} else {
		stored, err = v.client.Replace(ctx, secret, name, document)
	}
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", name, err)
	}
	return stored.Meta.ResourceVersion, nil
}

// errFull reports that a Secret cannot hold what belongs into it.
var errFull = errors.New("what replicas share does not fit")

// isConflict reports whether a Secret was not, or no longer, the version that put named.
func isConflict(err error) bool {
	var e *apiserver.Error
	return errors.As(err, &e) && (apiserver.IsConflict(e) || apiserver.IsExists(e) || apiserver.IsNotFound(e))
}
