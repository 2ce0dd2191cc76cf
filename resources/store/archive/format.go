package archive

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// formatVersion is the format that this code writes, and the newest that it reads.
const formatVersion = 1

// These limits apply to reading.
const (
	maxLine = 64 << 20
	maxFile = 1 << 20
	// maxRatio bounds how many bytes one byte of the file may expand to, above freeBytes. Stores reach 10 to 60; gzip
	// allows 1,032.
	maxRatio  = 200
	freeBytes = 64 << 20
)

// Header describes the source of a backup.
type Header struct {
	// Format is the version of the layout.
	Format int `json:"causewayBackup"`
	// Server is "global" or "zone", Zone the name of the zone, Version that of the program.
	Server  string `json:"server"`
	Zone    string `json:"zone,omitempty"`
	Version string `json:"version"`
	// Created is the time of the backup, Revision that of the store then.
	Created  time.Time `json:"created"`
	Revision uint64    `json:"revision"`
}

// File is a file of the data folder. Path is relative to it, with slashes.
type File struct {
	Path string `json:"path"`
	Mode uint32 `json:"mode"`
	Data []byte `json:"data"`
}

// line is any line after the header; exactly one field is set.
type line struct {
	Resource *entry   `json:"resource,omitempty"`
	File     *File    `json:"file,omitempty"`
	Trailer  *trailer `json:"trailer,omitempty"`
}

// count returns how many of the fields are set.
func (l *line) count() (n int) {
	for _, set := range []bool{l.Resource != nil, l.File != nil, l.Trailer != nil} {
		if set {
			n++
		}
	}
	return n
}

type trailer struct {
	Resources int    `json:"resources"`
	Files     int    `json:"files"`
	SHA256    string `json:"sha256"`
}

// entry is a resource.
type entry struct {
	Type      resources.Type    `json:"type"`
	Mesh      string            `json:"mesh,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	Spec      json.RawMessage   `json:"spec"`
	Status    json.RawMessage   `json:"status,omitempty"`
	Revision  uint64            `json:"revision"`
	Created   time.Time         `json:"created"`
	Modified  time.Time         `json:"modified"`
	Object    resources.Object  `json:"object,omitzero"`
}

func entryOf(r *resources.Resource) *entry {
	return &entry{
		Type: r.Type, Mesh: r.Mesh, Namespace: r.Namespace, Name: r.Name, Labels: r.Labels,
		Spec: r.Spec.JSON(), Status: r.Status, Revision: r.Revision, Created: r.CreationTime, Modified: r.ModificationTime,
		Object: r.Object,
	}
}

func (e *entry) resource() (*resources.Resource, error) {
	spec, err := resources.NewSpec(e.Type, e.Spec)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", e.Type, e.Name, err)
	}
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	return &resources.Resource{
		Key:    resources.Key{Type: e.Type, Mesh: e.Mesh, Namespace: e.Namespace, Name: e.Name},
		Labels: e.Labels, Spec: spec, Status: e.Status,
		Revision: e.Revision, CreationTime: e.Created, ModificationTime: e.Modified,
		Object: e.Object,
	}, nil
}
