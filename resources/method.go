package resources

import "slices"

// registeredMethods are the methods of the IANA HTTP method registry. The registry reserves PRI and `*` to prevent
// their use, so the list omits them.
var registeredMethods = []string{
	"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LABEL",
	"LINK", "LOCK",
	"MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS", "ORDERPATCH",
	"PATCH", "POST",
	"PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "TRACE", "UNBIND", "UNCHECKOUT",
	"UNLINK", "UNLOCK",
	"UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
}

// RegisteredMethods returns the HTTP methods that requests to an inbound may have, sorted. All others get a 400. The
// caller owns the slice.
func RegisteredMethods() []string { return slices.Clone(registeredMethods) }

// IsRegisteredMethod reports whether a method is registered. The comparison is case-sensitive, as HTTP methods are.
func IsRegisteredMethod(method string) bool {
	_, found := slices.BinarySearch(registeredMethods, method)
	return found
}
