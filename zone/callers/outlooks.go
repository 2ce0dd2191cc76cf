package callers

import (
	"slices"
	"sync"

	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Bounds of what is kept between questions: pages of callers, and the outlooks of one page.
const (
	maxPages    = 4
	maxOutlooks = 32 << 10
)

// outlook is what the rules of a service say of one caller, by its place among the columns.
type outlook struct {
	caller int
	rbac.Outlook
}

// outlooks keeps the outlooks of the last questions. A question that comes again after a change, as an open page asks it,
// judges only the services whose rules have changed. It is safe for concurrent use.
type outlooks struct {
	mu    sync.Mutex
	pages []*page // guarded by mu, the latest last; a page that is here does not change
}

// page has the outlooks of services for the same callers, by the marks of the services' rules.
type page struct {
	known   rbac.Known
	callers []string
	before  map[string][]outlook
	now     map[string][]outlook
	count   int
}

// begin returns a page for a question about callers, with the outlooks of the last such question.
func (o *outlooks) begin(known rbac.Known, callers []Caller) *page {
	ids := make([]string, len(callers))
	for i := range callers {
		ids[i] = callers[i].SpiffeID
	}
	fresh := &page{known: known, callers: ids, now: map[string][]outlook{}}
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.IndexFunc(o.pages, fresh.like); i >= 0 {
		fresh.before = o.pages[i].now
	}
	return fresh
}

// end keeps a page for the next question, in the place of one about the same callers.
func (o *outlooks) end(p *page) {
	p.before = nil
	if p.count > maxOutlooks {
		p.now = nil // so many cost more to hold than to make
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pages = append(slices.DeleteFunc(o.pages, p.like), p)
	if len(o.pages) > maxPages {
		o.pages = slices.Delete(o.pages, 0, 1)
	}
}

func (p *page) like(q *page) bool { return p.known == q.known && slices.Equal(p.callers, q.callers) }

// of returns the outlooks under a mark, if they are known.
func (p *page) of(mark string) (found []outlook, there bool) {
	if p == nil || mark == "" {
		return nil, false
	}
	if found, there = p.now[mark]; there {
		return found, true
	}
	if found, there = p.before[mark]; there {
		p.put(mark, found)
	}
	return found, there
}

// put keeps outlooks under a mark.
func (p *page) put(mark string, made []outlook) {
	if p == nil || mark == "" {
		return
	}
	p.now[mark] = made
	p.count += len(made)
}
