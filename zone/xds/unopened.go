package xds

import (
	"maps"
	"slices"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// logFiles tracks the files that a proxy's logs name, and those that it could not open. The proxy refuses a whole
// listener for one such file, so its listeners leave those files out. Proxies.mu guards it.
type logFiles struct {
	named map[string]bool
	// unopened holds the proxy's error for each file.
	unopened map[string]string
}

// use notes that a log writes to a file, and returns why the proxy cannot.
func (f *logFiles) use(path string) (problem string) {
	if f == nil {
		return ""
	}
	if words, ok := f.unopened[path]; ok {
		return "the proxy cannot open " + path + ": " + words + ". Fix that and rewrite the policy, or restart the proxy"
	}
	if f.named == nil {
		f.named = map[string]bool{}
	}
	f.named[path] = true
	return ""
}

// paths returns the files that logs name.
func (f *logFiles) paths() []string {
	if f == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.named))
}

// refused reads a proxy's error about listeners that it refused, and reports whether it is about a file.
func (f *logFiles) refused(words string) bool {
	for path := range maps.Keys(f.named) {
		_, why, found := strings.Cut(words, "'"+path+"'")
		if !found {
			continue
		}
		if f.unopened == nil {
			f.unopened = map[string]string{}
		}
		f.unopened[path] = strings.TrimLeft(strings.SplitN(why, "\n", 2)[0], ": ")
		delete(f.named, path)
		return true
	}
	return false
}

// again makes the proxy try all files once more.
func (f *logFiles) again() { *f = logFiles{} }

// notes are what is to be said of something that proxies share, and the files that it writes.
type notes struct {
	problems, files []string
}

func (n *notes) noted() *notes { return n }

// noting is a pointer to something with notes.
type noting[V any] interface {
	*V
	noted() *notes
}

// openable returns what proxies share under a key; or, for a proxy that cannot open one of the files that it writes, what is
// built without them. files are those of the proxy. build must depend on the key and on the files that it gets.
func openable[K comparable, V any, P noting[V]](of *table[K, V], key K, files *logFiles,
	build func(*logFiles) (*V, error)) (*V, error) {
	made, err := of.get(key, func() (*V, error) { return build(&logFiles{}) })
	if err == nil && slices.ContainsFunc(P(made).noted().files, func(file string) bool { return files.use(file) != "" }) {
		return build(files)
	}
	return made, err
}

// configRefused removes a file that the proxy cannot open, or a patch that it refuses.
func (x *Proxies) configRefused(p *proxy, k kind, words string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case p.target == nil:
	case (k == kindListener || k == kindCluster || k == kindExtension) && p.logFiles.refused(words):
		x.network.mark(p, allScope)
		x.settleLocked()
	case p.unpatchable.refused(p.state.Load(), k, words):
		next := *p.state.Load()
		x.publishLocked(p, &next)
	}
}

// configAccepted notes which patches the proxy accepted.
func (x *Proxies) configAccepted(p *proxy, k kind, sent []*discovery.Resource) {
	if s := p.state.Load(); s == nil || len(s.patched.of) == 0 || !slices.Contains(patchedKinds, k) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := p.state.Load(); s != nil && p.unpatchable.acceptedOf(s, k, sent) {
		next := *s
		x.publishLocked(p, &next)
	}
}
