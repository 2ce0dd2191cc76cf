package resources

import "fmt"

// MostRepeats is how often a conf may have a proxy do something for one request or connection: send it again, connect
// again, or look at an endpoint. MostMirrors is how many copies of a request it may have a proxy send. The proxies of a
// service's clients do what its producer's policies ask, and a worker of Envoy does nothing else meanwhile: with the
// 4,294,967,295 that Envoy accepts, one request stops a proxy for minutes.
const (
	MostRepeats = 100
	MostMirrors = 16
)

// repeats is a count of at most MostRepeats.
func repeats(value any) string {
	if problem := count(value); problem != "" || value.(float64) > MostRepeats {
		return fmt.Sprintf("want a whole number from 0 to %d, got %s", MostRepeats, written(value))
	}
	return ""
}

// oneOrMore is a count from 1 to MostRepeats.
func oneOrMore(value any) string {
	if problem := positive(value); problem != "" || value.(float64) > MostRepeats {
		return fmt.Sprintf("want a whole number from 1 to %d, got %s", MostRepeats, written(value))
	}
	return ""
}

// mirrorCount refuses more copies of a request than MostMirrors.
func (v *validation) mirrorCount(filters []HTTPRouteFilter, at *fieldPath) {
	n := 0
	for i := range filters {
		if filters[i].Type == "RequestMirror" {
			n++
		}
	}
	if n > MostMirrors && !v.peer {
		v.fail(at, "want at most %d of type RequestMirror, got %d: the clients' proxies send each copy", MostMirrors, n)
	}
}
