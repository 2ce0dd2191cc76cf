// Package web is the web page that shows the mesh: its sources, which Vite builds into dist/page, and the handler that
// serves the result. It imports nothing of Causeway: the page calls the HTTP API like any client.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Path is the path of the page at the address of the HTTP API.
const Path = "/ui/"

const (
	index   = "index.html"
	unbuilt = "unbuilt.html"
	// nonceMark is the place of the response's nonce in index.html.
	nonceMark = "{{nonce}}"
)

// types are the MIME types of the files that Vite creates. A machine's own table may differ.
var types = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// file is one file of the page. Its content stays in the program, and is not copied into memory: servers whose page
// nobody opens do not pay for it.
type file struct {
	mime string
	open func() (fs.File, error)
	// gzipped returns the file as gzip, or nil if that is not shorter. The first request pays for it, and it is kept.
	gzipped func() []byte
	// named means that the name contains a hash of the content.
	named bool
}

// Page serves the page. It has no state, needs no credential, and reveals nothing about the mesh: everybody gets the
// same files. All methods are safe for concurrent use.
type Page struct {
	files map[string]*file
	index []byte
	built bool
}

// New returns the page embedded in this program. A program that was built without it serves a page that says how to get
// it. New panics if the embedded files are not a page, because the build is broken.
func New() *Page {
	page, err := fs.Sub(built, "dist/page")
	if err != nil {
		panic(err)
	}
	if first, err := fs.ReadFile(page, index); err == nil {
		p, err := read(page, first)
		if err != nil {
			panic(err)
		}
		return p
	}
	told, err := fs.ReadFile(built, "dist/"+unbuilt)
	if err != nil {
		panic(err)
	}
	return &Page{index: told}
}

// read loads all files of a built page.
func read(page fs.FS, first []byte) (*Page, error) {
	p := &Page{files: map[string]*file{}, index: first, built: true}
	err := fs.WalkDir(page, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == index {
			return err
		}
		if types[path.Ext(name)] == "" {
			return fmt.Errorf("%s is of a type that no row names", name)
		}
		p.files[name] = &file{
			mime: types[path.Ext(name)], named: strings.HasPrefix(name, "assets/"),
			open:    func() (fs.File, error) { return page.Open(name) },
			gzipped: sync.OnceValue(func() []byte { return compress(page, name) }),
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the page: %w", err)
	}
	return p, nil
}

// compress returns a file as gzip, or nil if that is not shorter.
func compress(page fs.FS, name string) []byte {
	raw, err := fs.ReadFile(page, name)
	if err != nil {
		return nil
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil
	}
	if _, err := w.Write(raw); err != nil || w.Close() != nil || out.Len() >= len(raw) {
		return nil
	}
	return out.Bytes()
}

// Built reports whether the program contains the page, not only the instructions for getting it.
func (p *Page) Built() bool { return p.built }

// Serves reports whether a path belongs to the page.
func (p *Page) Serves(path string) bool { return strings.HasPrefix(path, Path) || path+"/" == Path }

// ServeHTTP answers GET and HEAD below Path. Every view's URL gets the same index.html, and the page reads the rest of
// the URL itself. Names of missing files are not found.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read by GET", http.StatusMethodNotAllowed)
		return
	}
	name, below := strings.CutPrefix(r.URL.Path, Path)
	switch f := p.files[name]; {
	case !below:
		http.Redirect(w, r, Path, http.StatusPermanentRedirect)
	case f != nil:
		f.serve(w, r)
	case strings.ContainsAny(name, "./"): // a view is one word: KRIs and other names are in the query
		http.NotFound(w, r)
	default:
		p.serveIndex(w, r, "")
	}
}

// ServeSignIn serves the view that ends a sign-in at an identity provider. Its page may also connect to the origin of
// tokenEndpoint, an https URL, where it redeems its code. Any other URL adds nothing.
func (p *Page) ServeSignIn(w http.ResponseWriter, r *http.Request, tokenEndpoint string) {
	u, err := url.Parse(tokenEndpoint)
	if err != nil || u.Scheme != "https" || !plainHost.MatchString(u.Host) {
		p.serveIndex(w, r, "")
		return
	}
	p.serveIndex(w, r, " https://"+u.Host)
}

// plainHost matches the hosts that can be in a policy unchanged.
var plainHost = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$`)

// serveIndex serves index.html with a policy of what a browser may load. It allows no inline scripts and, beside the
// file's, only styles with the nonce of this response. No text becomes markup or script: trusted types are required, and
// there is no policy that makes any. connect lists origins, each after a space, that the page may
// call besides its own.
func (p *Page) serveIndex(w http.ResponseWriter, r *http.Request, connect string) {
	nonce := newNonce()
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"+nonce+
		"'; img-src 'self'; connect-src 'self'"+connect+"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"+
		"; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	body := bytes.ReplaceAll(p.index, []byte(nonceMark), []byte(nonce))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	send(w, r, bytes.NewReader(body))
}

func newNonce() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // it never fails: crypto/rand, "Read"
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// serve serves a file. If its name contains a hash of its content, it may be cached for ever.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.mime)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if f.named {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if acceptsGzip(r) {
		if gzipped := f.gzipped(); gzipped != nil {
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Length", strconv.Itoa(len(gzipped)))
			send(w, r, bytes.NewReader(gzipped))
			return
		}
	}
	content, err := f.open()
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer content.Close()
	if info, err := content.Stat(); err == nil {
		h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	}
	send(w, r, content)
}

// acceptsGzip reports whether a client names gzip without a weight of zero.
func acceptsGzip(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept-Encoding") {
		for _, coding := range strings.Split(line, ",") {
			name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
			if strings.EqualFold(name, "gzip") {
				return !strings.HasPrefix(weight, "q=0") || strings.Trim(weight, "q=0.") != ""
			}
		}
	}
	return false
}

func send(w http.ResponseWriter, r *http.Request, body io.Reader) {
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, body) // a client that leaves meanwhile needs nothing more
	}
}
