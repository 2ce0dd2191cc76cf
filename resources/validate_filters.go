package resources

import "encoding/json"

// RouteHeaders is the conf of a MeshHTTPRoute's filter that changes the headers of requests or responses.
type RouteHeaders struct {
	Set    []HeaderValue `json:"set"`
	Add    []HeaderValue `json:"add"`
	Remove []string      `json:"remove"`
}

// RouteMirror is the conf of a MeshHTTPRoute's filter that copies requests. Percentage is a number, or a text of one;
// without it all requests are copied.
type RouteMirror struct {
	Percentage json.RawMessage `json:"percentage"`
	BackendRef *BackendRef     `json:"backendRef"`
}

// routeTarget is the part that redirects and rewrites share: the target of a request.
type routeTarget struct {
	Scheme   string `json:"scheme"`
	Hostname string `json:"hostname"`
	Port     uint32 `json:"port"`
	Path     struct {
		ReplaceFullPath    string `json:"replaceFullPath"`
		ReplacePrefixMatch string `json:"replacePrefixMatch"`
	} `json:"path"`
}

// routeFilter checks a filter of a MeshHTTPRoute. The code that configures proxies skips a peer's rule that Envoy
// rejects.
func (v *validation) routeFilter(f *HTTPRouteFilter, at *fieldPath) {
	if v.peer {
		return
	}
	var headers RouteHeaders
	var target routeTarget
	switch f.Type {
	case "RequestHeaderModifier":
		v.filterConf(f.RequestHeaderModifier, &headers, at.field("requestHeaderModifier"))
		v.routeHeaders(&headers, at.field("requestHeaderModifier"))
	case "ResponseHeaderModifier":
		v.filterConf(f.ResponseHeaderModifier, &headers, at.field("responseHeaderModifier"))
		v.routeHeaders(&headers, at.field("responseHeaderModifier"))
	case "RequestRedirect":
		v.filterConf(f.RequestRedirect, &target, at.field("requestRedirect"))
		v.routeTarget(&target, at.field("requestRedirect"))
	case "URLRewrite":
		v.filterConf(f.URLRewrite, &target, at.field("urlRewrite"))
		v.routeTarget(&target, at.field("urlRewrite"))
	case "RequestMirror":
		v.mirror(f.RequestMirror, at.field("requestMirror"))
	}
}

// mirror checks a filter that copies requests.
func (v *validation) mirror(raw json.RawMessage, at *fieldPath) {
	var conf RouteMirror
	if len(raw) == 0 {
		v.fail(at, "is required for a filter of type RequestMirror")
		return
	}
	v.filterConf(raw, &conf, at)
	if len(conf.Percentage) > 0 {
		v.percentage(conf.Percentage, at.field("percentage"))
	}
	if conf.BackendRef == nil {
		v.fail(at.field("backendRef"), "is required")
	}
}

func (v *validation) filterConf(raw json.RawMessage, conf any, at *fieldPath) {
	if len(raw) == 0 {
		return
	}
	if err := json.Unmarshal(raw, conf); err != nil {
		v.fail(at, "does not have the form of its type: %v", err)
	}
}

func (v *validation) routeHeaders(c *RouteHeaders, at *fieldPath) {
	v.headerCount(c.Set, at.field("set"))
	for i := range c.Set {
		v.header(&c.Set[i], at.field("set").item(i))
	}
	v.headerCount(c.Add, at.field("add"))
	for i := range c.Add {
		v.header(&c.Add[i], at.field("add").item(i))
	}
	if len(c.Remove) > maxHeaderChanges {
		v.fail(at.field("remove"), "want at most %d, got %d", maxHeaderChanges, len(c.Remove))
	}
	for i, name := range c.Remove {
		if !WritableHeader(name) {
			v.fail(at.field("remove").item(i), "%q is not the name of a header that may be removed", shorten(name))
		}
	}
}

func (v *validation) routeTarget(c *routeTarget, at *fieldPath) {
	line := func(text string, at *fieldPath) {
		if !HeaderText(text) {
			v.fail(at, "want at most 4096 bytes in one line")
		}
	}
	line(c.Scheme, at.field("scheme"))
	line(c.Hostname, at.field("hostname"))
	line(c.Path.ReplaceFullPath, at.field("path").field("replaceFullPath"))
	line(c.Path.ReplacePrefixMatch, at.field("path").field("replacePrefixMatch"))
	if c.Port > maxPort {
		v.fail(at.field("port"), "want 1 to %d, got %d", maxPort, c.Port)
	}
}
