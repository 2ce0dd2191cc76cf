package api

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// pageStart is where a page of a list begins: after a number of resources, or after one of them. By a number alone, a page
// would leave out what moves up while a client reads, because something before it is deleted.
type pageStart struct {
	number int
	// key, if not nil, is the last resource of the page before, by its mesh, namespace and name.
	key []string
}

// readStart parses what String returns. A number alone is one, too.
func readStart(text string) (pageStart, bool) {
	number, encoded, hasKey := strings.Cut(text, ".")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return pageStart{}, false
	}
	if !hasKey {
		return pageStart{number: n}, true
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	key := strings.Split(string(raw), "\x00")
	return pageStart{n, key}, err == nil && len(key) == 3
}

// String returns the form for a URL.
func (p pageStart) String() string {
	if p.key == nil {
		return strconv.Itoa(p.number)
	}
	return strconv.Itoa(p.number) + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Join(p.key, "\x00")))
}

// before reports whether r, which follows number others in its list, is on the page or after it.
func (p pageStart) before(r *resources.Resource, number int) bool {
	if p.key == nil {
		return number >= p.number
	}
	return compareInList(r.Key, resources.Key{Mesh: p.key[0], Namespace: p.key[1], Name: p.key[2]}) > 0
}

// after returns the start of the page after one of size resources that ends with last.
func (p pageStart) after(last *resources.Resource, size int) pageStart {
	return pageStart{p.number + size, []string{last.Mesh, last.Namespace, last.Name}}
}
