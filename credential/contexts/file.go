// Package contexts reads and writes the files in which a person keeps the servers that causewayctl talks to: their
// addresses, how to verify them, and which credential to present. A file contains no secret; it names the files that
// do.
package contexts

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/credential"
)

// MaxContexts is the maximum number of contexts in one file.
const MaxContexts = 1000

// Context is one server, global or zone, and how to reach it. Paths are absolute, or relative to the file's folder.
type Context struct {
	// Name is 1 to 63 letters, digits, dots, dashes and underscores.
	Name string `json:"name"`
	// Address is the URL of the server's HTTP API.
	Address string `json:"address"`
	// KubeContext is the context of a kubeconfig by which the address, that of a Service in a cluster, is reached; empty
	// for an address that is reached directly. Kubeconfig is that file; kubectl's own choice if it is empty.
	KubeContext string `json:"kubeContext,omitempty"`
	Kubeconfig  string `json:"kubeconfig,omitempty"`
	// CA is a PEM file of the CA that signed the server's certificate; CASHA256 is the hash of the CA's certificate. At
	// most one is set.
	CA       string `json:"ca,omitempty"`
	CASHA256 string `json:"caSha256,omitempty"`
	// TokenFile is the file with the user token; ClientCert and ClientKey are PEM files; SessionFile is the file in which
	// causewayctl login keeps a session. At most one of the three kinds is set.
	TokenFile   string `json:"tokenFile,omitempty"`
	ClientCert  string `json:"clientCert,omitempty"`
	ClientKey   string `json:"clientKey,omitempty"`
	SessionFile string `json:"sessionFile,omitempty"`
}

// File is one file of contexts. It is not safe for concurrent use.
type File struct {
	// CurrentContext is the context of commands that name none; empty for none.
	CurrentContext string    `json:"currentContext,omitempty"`
	Contexts       []Context `json:"contexts"`

	path string
}

// Path returns the file's path.
func (f *File) Path() string { return f.path }

var names = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// ErrContent reports a file that is not a valid file of contexts.
var ErrContent = errors.New("not a file of contexts")

// New returns a File without contexts, which Save writes to path.
func New(path string) *File { return &File{path: path} }

// Read returns the file's contents, or an empty File if it does not exist. It refuses unknown fields, and a file that
// others may write, because its writer decides to whom causewayctl sends credentials. Errors include ErrContent.
func Read(path string) (*File, error) {
	f := New(path)
	raw, err := credential.Public(path, path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(raw, f); err != nil {
		return nil, contentError{fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "))}
	}
	if err := errors.Join(noneEmpty(raw), f.validate()); err != nil {
		return nil, contentError{fmt.Errorf("%s: %w", path, err)}
	}
	return f, nil
}

// noneEmpty refuses an empty field of a context, such as a tokenFile whose value a script did not know: the command
// would continue without the credential.
func noneEmpty(raw []byte) error {
	var document struct {
		Contexts []map[string]any `json:"contexts"`
	}
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return err
	}
	for i, one := range document.Contexts {
		for _, field := range slices.Sorted(maps.Keys(one)) {
			text, isText := one[field].(string)
			if strings.EqualFold(field, "address") || one[field] != nil && (!isText || strings.TrimSpace(text) != "") {
				continue // an address is not a credential, and validate requires one
			}
			return fmt.Errorf("contexts[%d].%s: is empty: give it a value, or leave it out", i, field)
		}
	}
	return nil
}

// contentError is ErrContent with another text.
type contentError struct{ error }

func (e contentError) Unwrap() []error { return []error{ErrContent, e.error} }

func (f *File) validate() error {
	if len(f.Contexts) > MaxContexts {
		return fmt.Errorf("contexts: %d, more than %d", len(f.Contexts), MaxContexts)
	}
	seen := map[string]bool{}
	for i := range f.Contexts {
		c := &f.Contexts[i]
		if err := c.Validate(); err != nil {
			return fmt.Errorf("contexts[%d].%w", i, err)
		}
		if seen[c.Name] {
			return fmt.Errorf("contexts[%d].name: %q appears twice", i, c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// Validate returns an error that begins with the wrong field.
func (c *Context) Validate() error {
	switch {
	case !names.MatchString(c.Name):
		return fmt.Errorf("name: %q: want 1 to 63 letters, digits, dots, dashes and underscores", c.Name)
	case c.Address == "":
		return errors.New("address: missing: want the URL of the server's HTTP API, such as https://global.example:5681")
	case c.Kubeconfig != "" && c.KubeContext == "":
		return errors.New("kubeconfig: kubeContext is missing: want the name of a context of that file")
	case c.CA != "" && c.CASHA256 != "":
		return errors.New("ca: caSha256 is set too: one of the two is enough")
	case (c.ClientCert == "") != (c.ClientKey == ""):
		return errors.New("clientCert: clientCert and clientKey belong together")
	case c.TokenFile != "" && c.ClientCert != "":
		return errors.New("tokenFile: clientCert is set too: one credential is enough")
	case c.SessionFile != "" && (c.TokenFile != "" || c.ClientCert != ""):
		return errors.New("sessionFile: another credential is set too: one is enough")
	}
	return nil
}

// Find returns a copy of the named context with absolute paths, or nil.
func (f *File) Find(name string) *Context {
	i := slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	c := f.Contexts[i]
	for _, p := range []*string{&c.Kubeconfig, &c.CA, &c.TokenFile, &c.ClientCert, &c.ClientKey, &c.SessionFile} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(f.path), *p)
		}
	}
	return &c
}

// Set adds the context, or replaces the one with its name.
func (f *File) Set(c Context) {
	if i := slices.IndexFunc(f.Contexts, func(old Context) bool { return old.Name == c.Name }); i >= 0 {
		f.Contexts[i] = c
		return
	}
	f.Contexts = append(f.Contexts, c)
}

// Delete removes the named context, if it exists. If it was the current one, none is.
func (f *File) Delete(name string) {
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.CurrentContext == name {
		f.CurrentContext = ""
	}
}

// target returns the path of the file itself: a link stays one.
func (f *File) target() string {
	if target, err := filepath.EvalSymlinks(f.path); err == nil {
		return target
	}
	return f.path
}

// Save replaces the whole file, so that an interrupted write leaves the old one. Only its owner may read it. It creates
// the folder. The caller holds the file (see Hold). Errors are those of the operating system, and of invalid contexts.
func (f *File) Save() error {
	if err := f.validate(); err != nil {
		return err
	}
	raw, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	next, err := credential.Replace(f.target(), len(raw))
	if err != nil {
		return err
	}
	defer next.Discard()
	return next.Commit(raw)
}
