package xds

import (
	"maps"
	"strings"
)

// logFiles are the files that a proxy's logs name, and those of them that it could not open: it refuses the whole listener
// for one, so it is told of its listeners without such files. Proxies.mu guards it.
type logFiles struct {
	named map[string]bool
	// unopened have the proxy's words.
	unopened map[string]string
}

// use notes that a log is to be written to a file, and returns why the proxy cannot.
func (f *logFiles) use(path string) (problem string) {
	if words, ok := f.unopened[path]; ok {
		return "the proxy cannot open " + path + ": " + words + ". Mend that and write the policy anew, or restart the proxy"
	}
	if f.named == nil {
		f.named = map[string]bool{}
	}
	f.named[path] = true
	return ""
}

// refused takes a proxy's words on listeners that it refused, and reports whether they are of a file.
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

// again has the proxy try all files once more.
func (f *logFiles) again() { *f = logFiles{} }

// listenersRefused leaves a file out that the proxy cannot open.
func (x *Proxies) listenersRefused(p *proxy, words string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p.target == nil || !p.logFiles.refused(words) {
		return
	}
	x.network.mark(p, everything)
	x.settleLocked()
}
