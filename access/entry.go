package access

import (
	"time"
)

// Events of an Entry.
const (
	EventWrite  = "write"
	EventDelete = "delete"
	// EventLogin is a credential that is no proof, and a request without one.
	EventLogin = "login"
	// EventDenied is a request of an authenticated caller without the permission for it, or against the rules for
	// browsers.
	EventDenied = "denied"
	EventIssue  = "issue"
	EventRotate = "rotate"
	EventRevoke = "revoke"
	// EventZone is an event of a zone: it joined, was disabled, was asked to resync, ...
	EventZone = "zone"
	// EventBackUp is a copy of everything that a server keeps.
	EventBackUp = "back-up"
	// EventReveal is a read of the secrets of a resource.
	EventReveal = "reveal"
	// EventDamaged stands for a line that cannot be read any more.
	EventDamaged = "damaged"
)

// Events lists what entries tell of. The caller owns the slice.
func Events() []string {
	return []string{EventWrite, EventDelete, EventLogin, EventDenied, EventIssue, EventRotate, EventRevoke, EventZone,
		EventBackUp, EventReveal}
}

// Outcomes lists how it can have gone. The caller owns the slice.
func Outcomes() []string { return []string{Done, Denied, Failed, Unknown} }

// How it went.
const (
	Done   = "done"
	Denied = "denied"
	Failed = "failed"
	// Unknown is the outcome of an action that began, and of which this log does not know whether it was done: the
	// server ended in between.
	Unknown = "unknown"
)

// Entry is one line of the audit log. It must not hold secrets.
type Entry struct {
	// Seq and Time are the log's to set. Seq grows by one from line to line of all files.
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// Event and Outcome are among the constants above.
	Event   string `json:"event"`
	Outcome string `json:"outcome"`
	// User and Groups identify the caller, as proven by Method and Credential, which names the credential. For a failed
	// login, User is the user that the credential claims.
	User       string   `json:"user,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	Method     Method   `json:"method,omitempty"`
	Credential string   `json:"credential,omitempty"`
	// From is the peer's address.
	From string `json:"from,omitempty"`
	// Request is the method and path of an HTTP request, Status what it was answered with.
	Request string `json:"request,omitempty"`
	Status  int    `json:"status,omitempty"`
	// Verb to Name are the Action that it was about; a batch has them in Changes.
	Verb      string `json:"verb,omitempty"`
	Type      string `json:"type,omitempty"`
	Mesh      string `json:"mesh,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Revision is the store's after a write.
	Revision uint64 `json:"revision,omitempty"`
	// Missing is the permission that was lacking, Reason why else it was refused or failed.
	Missing string           `json:"missing,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Changes []ResourceChange `json:"changes,omitempty"`
	// Details are further facts, by name.
	Details map[string]string `json:"details,omitempty"`
	// Intent is the mark of what was written down before it was done, see Log.Begin.
	Intent string `json:"intent,omitempty"`
	// Suppressed is the number of refusals before this one that were only counted, because there were too many.
	Suppressed uint64 `json:"suppressed,omitempty"`
}

// About fills in the action.
func (e *Entry) About(a Action) {
	e.Verb, e.Type, e.Mesh, e.Namespace, e.Name = a.Verb, a.Type, a.Mesh, a.Namespace, a.Name
}

// refused reports whether the entry is about something that was not done. Such entries have files of their own, so that
// a caller without permissions cannot push out what was done.
func (e *Entry) refused() bool { return e.Outcome == Denied }

// maxEntryText bounds texts that come from outside, in bytes.
const maxEntryText = 512

// bound cuts what a peer may have made long.
func (e *Entry) bound() {
	for _, text := range []*string{&e.User, &e.From, &e.Request, &e.Reason, &e.Missing, &e.Type, &e.Mesh, &e.Namespace,
		&e.Name, &e.Credential} {
		if len(*text) > maxEntryText {
			*text = (*text)[:maxEntryText] + "..."
		}
	}
	if len(e.Groups) > maxEntryGroups {
		e.Groups = e.Groups[:maxEntryGroups:maxEntryGroups]
	}
}

// maxEntryGroups bounds how many groups a line names.
const maxEntryGroups = 32
