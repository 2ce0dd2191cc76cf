package callers

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Limits of a part of the matrix.
const (
	defaultSize = 100
	maxSize     = 500
)

// question selects a part of the matrix. Empty fields select everything.
type question struct {
	mesh            string
	zone, namespace string
	// service is part of a service's name, and caller part of a SPIFFE ID.
	service, caller string
	known           rbac.Known
	// reported asks a global for what the proxies of the zone reported, too.
	reported bool
	services window
	callers  window
}

// window is a page of a list.
type window struct{ size, offset int }

// of returns the bounds of the window in a list.
func (w window) of(length int) (from, to int) {
	from = min(w.offset, length)
	return from, min(from+w.size, length)
}

func readQuestion(r *http.Request) (*question, error) {
	query := r.URL.Query()
	q := &question{mesh: r.PathValue("mesh"), zone: query.Get("zone"), namespace: query.Get("namespace"),
		service: query.Get("service"), caller: query.Get("caller"), known: rbac.Known{Method: query.Get("method")}}
	for field, text := range map[string]string{"service": q.service, "caller": q.caller} {
		if text == "" {
			continue
		}
		if err := api.CheckText(field, text); err != nil {
			return nil, err
		}
	}
	for kind, name := range map[string]string{"zone": q.zone, "namespace": q.namespace} {
		if name == "" {
			continue
		}
		if err := api.CheckName(kind, kind, name); err != nil {
			return nil, err
		}
	}
	if m := q.known.Method; m != "" && (!resources.IsRegisteredMethod(m) || m != strings.ToUpper(m)) {
		return nil, api.BadField("method", "%q is not a registered method, in capitals: want one such as GET", m)
	}
	if written := query.Get("path"); written != "" {
		path, refused := rbac.NormalizePath(written)
		if refused != "" {
			return nil, api.BadField("path", "%q: %s", written, refused)
		}
		q.known.Path = path
	}
	switch reported := query.Get("reported"); reported {
	case "", "false":
	case "true":
		q.reported = true
	default:
		return nil, api.BadField("reported", "%q: want true or false", reported)
	}
	var err error
	if q.services, err = readWindow(query.Get("size"), query.Get("offset"), "size", "offset"); err != nil {
		return nil, err
	}
	q.callers, err = readWindow(query.Get("callers"), query.Get("callersOffset"), "callers", "callersOffset")
	return q, err
}

func readWindow(size, offset, sizeField, offsetField string) (w window, err error) {
	w.size = defaultSize
	if size != "" {
		if w.size, err = strconv.Atoi(size); err != nil || w.size < 1 || w.size > maxSize {
			return w, api.BadField(sizeField, "want 1 to %d, got %q", maxSize, size)
		}
	}
	if offset != "" {
		if w.offset, err = strconv.Atoi(offset); err != nil || w.offset < 0 {
			return w, api.BadField(offsetField, "want a number from 0, got %q", offset)
		}
	}
	return w, nil
}
