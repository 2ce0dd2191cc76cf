package resources

import "slices"

// registeredMethods are those of the IANA HTTP method registry. PRI and `*` are in it only so that nobody uses them.
var registeredMethods = []string{
	"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LABEL", "LINK", "LOCK",
	"MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS", "ORDERPATCH", "PATCH", "POST",
	"PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "TRACE", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK",
	"UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
}

// RegisteredMethods are the HTTP methods that requests to an inbound may have, sorted; all others are answered with 400.
func RegisteredMethods() []string { return slices.Clone(registeredMethods) }

// IsRegisteredMethod reports whether a method is registered, in the spelling that it is registered in: methods have case.
func IsRegisteredMethod(method string) bool {
	_, found := slices.BinarySearch(registeredMethods, method)
	return found
}
