package apiserver

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// Kind is one kind of object that the API server serves.
type Kind struct {
	// Group is empty for the core group.
	Group, Version string
	// Plural is the kind's name in paths.
	Plural string
	// Name is the kind in documents: MeshTrafficPermission.
	Name string
	// Namespaced reports whether its objects are in namespaces.
	Namespaced bool
}

// APIVersion is the apiVersion of the kind's documents.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// path returns the path of the kind's objects; of one object if name is not empty.
func (k Kind) path(namespace, name, subresource string) string {
	path := "/apis/" + k.Group + "/" + k.Version
	if k.Group == "" {
		path = "/api/" + k.Version
	}
	if namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	path += "/" + k.Plural
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	if subresource != "" {
		path += "/" + subresource
	}
	return path
}

// Name identifies an object among those of its kind. Namespace is empty for kinds without namespaces.
type Name struct {
	Namespace, Name string
}

func (n Name) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

// Metadata is the part of all objects' metadata that is read here.
type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	CreationTimestamp time.Time         `json:"creationTimestamp,omitzero"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

// Object is one object as the API server sent it.
type Object struct {
	Meta Metadata
	// Raw is the whole document.
	Raw json.RawMessage
}

// ID identifies the object among those of its kind.
func (o *Object) ID() Name { return Name{Namespace: o.Meta.Namespace, Name: o.Meta.Name} }

// Parse reads an object.
func Parse(raw []byte) (*Object, error) {
	var head struct {
		Metadata Metadata `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("object of the API server: %w", err)
	}
	if head.Metadata.Name == "" {
		return nil, fmt.Errorf("object of the API server: it has no name")
	}
	return &Object{Meta: head.Metadata, Raw: raw}, nil
}
