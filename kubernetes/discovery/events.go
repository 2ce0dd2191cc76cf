package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

const (
	// maxEvents limits the Events that wait to be written, and maxProblems those of one object.
	maxEvents, maxProblems = 1000, 10
	// maxMessage limits the message of an Event, as the API server does.
	maxMessage = 1024
	// maxEventName leaves room for a hash after the name of the object.
	maxEventName = 200
)

// object is the subject of an Event.
type object struct{ kind, namespace, name, uid string }

// event is a problem to report.
type event struct {
	of object
	Problem
}

// reportLocked reports the problems of an object, unless they were already reported.
func (d *Controller) reportLocked(of object, problems []Problem) {
	text, key := "", of
	key.uid = "" // another object of the name replaces the first
	for _, one := range problems[:min(len(problems), maxProblems)] {
		text += of.uid + one.Reason + one.Message + "\n"
	}
	delete(d.reasons, key)
	for _, one := range problems {
		d.reasons[key] = append(d.reasons[key], one.Reason)
	}
	if d.reported[key] == text {
		return
	}
	if text == "" {
		delete(d.reported, key)
		return
	}
	for _, one := range problems[:min(len(problems), maxProblems)] {
		select {
		case d.events <- event{of, one}:
		default:
			return // it is reported later: see reportAgain
		}
		d.Log.Warn("an object of the cluster is not in the mesh as its author may expect", "kind", of.kind, "object",
			of.namespace+"/"+of.name, "reason", one.Reason, "message", one.Message)
	}
	d.reported[key] = text
}

// reportAgain makes all problems be reported again.
func (d *Controller) reportAgain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.reported)
	d.allLocked()
}

// writeEvents writes Events until ctx ends. A failed one is reported again with the others.
func (d *Controller) writeEvents(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-d.events:
			raw, err := e.document(time.Now())
			if err == nil {
				_, err = d.Client.Create(ctx, core("events", "Event", true), e.of.namespace, raw)
			}
			if err != nil && !apiserver.IsExists(err) && ctx.Err() == nil {
				d.Log.Debug("an Event is not written", "error", err)
			}
		}
	}
}

// document returns the Event. Its name follows from its content, so that the same Event exists once.
func (e *event) document(now time.Time) ([]byte, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %s", e.of.kind, e.of.uid, e.Reason, e.Message))
	name, message := e.of.name, e.Message
	if len(name) > maxEventName {
		name = strings.TrimRight(name[:maxEventName], "-.")
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	at := now.UTC().Format(time.RFC3339)
	type m = map[string]any
	return json.Marshal(m{"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": e.Reason, "message": message,
		"metadata":       m{"name": name + "." + hex.EncodeToString(sum[:8]), "namespace": e.of.namespace},
		"involvedObject": m{"apiVersion": "v1", "kind": e.of.kind, "namespace": e.of.namespace, "name": e.of.name, "uid": e.of.uid},
		"source":         m{"component": "causeway-zone"}, "firstTimestamp": at, "lastTimestamp": at, "count": 1,
	})
}
