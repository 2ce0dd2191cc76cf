package secrets

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// namedPrefix is the prefix of the keeper's names of secrets that users manage.
const namedPrefix = "named/"

// MaxNamed bounds a secret that users manage, in bytes. MaxNamedOfMesh bounds the number of them in a mesh.
const (
	MaxNamed       = 64 << 10
	MaxNamedOfMesh = 1000
)

// Named identifies a secret that users manage. It never holds the value. Namespace is empty if the secret has none.
type Named struct {
	Mesh, Namespace, Name string
}

// keeperName joins the parts with slashes; no part contains one.
func (n Named) keeperName() string {
	return namedPrefix + strings.Join([]string{n.Mesh, n.Namespace, n.Name}, "/")
}

// NamedOf returns the user's secret stored under a key; ok is false for other keys.
func NamedOf(k resources.Key) (n Named, ok bool) {
	rest, ok := strings.CutPrefix(k.Name, namedPrefix)
	parts := strings.Split(rest, "/")
	if !ok || k.Type != resources.TypeSecret || len(parts) != 3 {
		return Named{}, false
	}
	return Named{Mesh: parts[0], Namespace: parts[1], Name: parts[2]}, true
}

// PutNamed stores or replaces a user's secret. Errors are those of Keeper.Put, and ErrLimit.
func (k *Keeper) PutNamed(ctx context.Context, n Named, plain []byte) (version uint64, err error) {
	if len(plain) == 0 || len(plain) > MaxNamed {
		return 0, fmt.Errorf("%w: secret %s: want 1 to %d bytes, got %d", ErrLimit, n.Name, MaxNamed, len(plain))
	}
	at := k.Version(n.keeperName())
	if at == 0 && len(k.ListNamed(n.Mesh)) >= MaxNamedOfMesh {
		return 0, fmt.Errorf("%w: mesh %s has %d secrets, the maximum: delete some", ErrLimit, n.Mesh, MaxNamedOfMesh)
	}
	return k.Put(ctx, n.keeperName(), plain, at)
}

// GetNamed returns the value of a user's secret to the code that uses it. Errors are those of Get.
func (k *Keeper) GetNamed(ctx context.Context, n Named) ([]byte, error) {
	plain, _, err := k.Get(ctx, n.keeperName())
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("there is no secret %q in mesh %s%s: %w", n.Name, n.Mesh, inNamespace(n.Namespace),
			ErrNotFound)
	}
	return plain, err
}

// DeleteNamed removes a user's secret, or returns ErrNotFound.
func (k *Keeper) DeleteNamed(ctx context.Context, n Named) error {
	version := k.Version(n.keeperName())
	if version == 0 {
		return fmt.Errorf("there is no secret %q in mesh %s%s: %w", n.Name, n.Mesh, inNamespace(n.Namespace), ErrNotFound)
	}
	return k.Delete(ctx, n.keeperName(), version)
}

// ListNamed lists the secrets of users in a mesh, sorted by namespace and name.
func (k *Keeper) ListNamed(mesh string) []Named {
	var out []Named
	for _, name := range k.Names() {
		if n, ok := NamedOf(keyOf(name)); ok && n.Mesh == mesh {
			out = append(out, n)
		}
	}
	return out
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ", without a namespace"
	}
	return ", namespace " + namespace
}
