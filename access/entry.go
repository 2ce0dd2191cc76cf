package access

import (
	"time"
)

// Events of an Entry.
const (
	EventWrite  = "write"
	EventDelete = "delete"
	// EventLogin is a request with an invalid credential, or without any.
	EventLogin = "login"
	// EventDenied is a request of an authenticated caller who lacks the permission, or that violates the rules for
	// browsers.
	EventDenied = "denied"
	EventIssue  = "issue"
	EventRotate = "rotate"
	EventRevoke = "revoke"
	// EventZone is an event of a zone: it joined, was disabled, was asked to resync, ...
	EventZone = "zone"
	// EventBackUp is a copy of all of a server's data.
	EventBackUp = "back-up"
	// EventReveal is a read of the secrets of a resource.
	EventReveal = "reveal"
	// EventDamaged stands for a line that is no longer readable.
	EventDamaged = "damaged"
)

// Events lists the events of entries. The caller owns the slice.
func Events() []string {
	return []string{EventWrite, EventDelete, EventLogin, EventDenied, EventIssue, EventRotate, EventRevoke, EventZone,
		EventBackUp, EventReveal}
}

// Outcomes lists the outcomes of entries. The caller owns the slice.
func Outcomes() []string { return []string{Done, Denied, Failed, Unknown} }

// Outcomes of an Entry.
const (
	Done   = "done"
	Denied = "denied"
	Failed = "failed"
	// Unknown is the outcome of an action that began but may not have been done: the server stopped in between.
	Unknown = "unknown"
)

// Entry is one line of the audit log. It must not hold secrets.
type Entry struct {
	// The log sets Seq and Time. Seq grows by one from line to line across all files.
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
	// Request is the method and path of an HTTP request, Status the status of the response.
	Request string `json:"request,omitempty"`
	Status  int    `json:"status,omitempty"`
	// Verb to Name are the Action; a batch has them in Changes.
	Verb      string `json:"verb,omitempty"`
	Type      string `json:"type,omitempty"`
	Mesh      string `json:"mesh,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Revision is the store's revision after a write.
	Revision uint64 `json:"revision,omitempty"`
	// Missing is the missing permission, Reason any other reason for a refusal or failure.
	Missing string           `json:"missing,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Changes []ResourceChange `json:"changes,omitempty"`
	// Details are further facts, by name.
	Details map[string]string `json:"details,omitempty"`
	// Intent identifies the intent that was recorded before the action; see Log.Begin.
	Intent string `json:"intent,omitempty"`
	// Suppressed is the number of refusals before this one that were only counted, because there were too many.
	Suppressed uint64 `json:"suppressed,omitempty"`
}

// About fills in the action.
func (e *Entry) About(a Action) {
	e.Verb, e.Type, e.Mesh, e.Namespace, e.Name = a.Verb, a.Type, a.Mesh, a.Namespace, a.Name
}

// refused reports whether the entry is about something that was not done. Such entries have separate files, so that a
// caller without permissions cannot push out what was done.
func (e *Entry) refused() bool { return e.Outcome == Denied }

// maxEntryText bounds text from outside, in bytes.
const maxEntryText = 512

// bound truncates text that a peer may have made long.
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
