package secrets

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// namedPrefix begins the keeper's name of each secret that users manage.
const namedPrefix = "named/"

// MaxNamed bounds a secret that users manage, in bytes; MaxNamedOfMesh how many a mesh may have.
const (
	MaxNamed       = 64 << 10
	MaxNamedOfMesh = 1000
)

// Named is a secret that users manage: what it is called, never what it is. Namespace is empty where it has none.
type Named struct {
	Mesh, Namespace, Name string
}

// keeperName: no part holds a slash.
func (n Named) keeperName() string {
	return namedPrefix + strings.Join([]string{n.Mesh, n.Namespace, n.Name}, "/")
}

// NamedOf is the secret of users behind a key of the store; ok is false for other keys.
func NamedOf(k resources.Key) (n Named, ok bool) {
	rest, ok := strings.CutPrefix(k.Name, namedPrefix)
	parts := strings.Split(rest, "/")
	if !ok || k.Type != resources.TypeSecret || len(parts) != 3 {
		return Named{}, false
	}
	return Named{Mesh: parts[0], Namespace: parts[1], Name: parts[2]}, true
}

// PutNamed stores a secret of users, in the place of one that is there. Errors: those of Keeper.Put, and one that says what is too much.
func (k *Keeper) PutNamed(ctx context.Context, n Named, plain []byte) (version uint64, err error) {
	if len(plain) == 0 || len(plain) > MaxNamed {
		return 0, fmt.Errorf("%w: secret %s: want 1 to %d bytes, got %d", ErrLimit, n.Name, MaxNamed, len(plain))
	}
	at := k.Version(n.keeperName())
	if at == 0 && len(k.ListNamed(n.Mesh)) >= MaxNamedOfMesh {
		return 0, fmt.Errorf("%w: mesh %s has %d secrets, which is the most: delete some", ErrLimit, n.Mesh, MaxNamedOfMesh)
	}
	return k.Put(ctx, n.keeperName(), plain, at)
}

// GetNamed returns a secret of users to what puts it to use. Errors are those of Get.
func (k *Keeper) GetNamed(ctx context.Context, n Named) ([]byte, error) {
	plain, _, err := k.Get(ctx, n.keeperName())
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("there is no secret %q in mesh %s%s: %w", n.Name, n.Mesh, inNamespace(n.Namespace), ErrNotFound)
	}
	return plain, err
}

// DeleteNamed removes a secret of users; ErrNotFound when there is none.
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
