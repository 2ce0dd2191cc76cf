package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// AnnotationSchema on a CustomResourceDefinition names the fields that it is made for: the Schema of its type.
	AnnotationSchema = "causeway.io/schema"
	// schemaPeriod is the time between two looks at the definitions.
	schemaPeriod = 5 * time.Minute
	schemaBytes  = 8
)

// Schema returns a hash of the fields that this version knows of a type, without their descriptions.
func Schema(t resources.Type) string {
	raw, err := json.Marshal(resources.OpenAPI(t, func(string) string { return "" }))
	if err != nil {
		return "" // a schema consists of maps and texts
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:schemaBytes])
}

// tendSchemas compares the definitions with the types of this version, now and from time to time. A definition of an older
// or a newer version changes no object: it keeps fields that it does not know. But the API server then refuses or lets
// pass what this server judges otherwise.
func (b *Bridge) tendSchemas(ctx context.Context) error {
	ticker := time.NewTicker(schemaPeriod)
	defer ticker.Stop()
	for {
		for _, k := range b.kinds {
			b.compareSchema(ctx, k)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// compareSchema notes whether the definition of a kind is another version's. An answer that does not come changes nothing.
func (b *Bridge) compareSchema(ctx context.Context, k *kindState) {
	o, err := b.Client.Get(ctx, definitions, apiserver.Name{Name: k.Plural + "." + k.Group})
	if err != nil && !apiserver.IsNotFound(err) {
		return
	}
	differs := err == nil && o.Meta.Annotations[AnnotationSchema] != Schema(k.Type)
	b.mu.Lock()
	was := k.differs
	k.differs = differs
	b.mu.Unlock()
	if differs && !was {
		b.Log.Warn("the CustomResourceDefinition is of another version than this server", "type", k.Type,
			"schema", o.Meta.Annotations[AnnotationSchema], "own", Schema(k.Type))
	}
}
