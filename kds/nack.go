package kds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/kds/tracker"
)

// Limits of a peer's NACK that is read, in lines and in bytes of each. Ours has no more: its receiver reads no more.
const (
	maxRefusalLines = 1000
	maxRefusalLine  = 4096
)

// refusalMessage returns the text of a NACK: one line for each resource, within the limits.
func refusalMessage(refused []tracker.Refusal) string {
	lines := make([]string, 0, min(len(refused), maxRefusalLines))
	for _, r := range refused[:min(len(refused), maxRefusalLines)] {
		line := r.Name + ": " + strings.ReplaceAll(r.Reason, "\n", "; ")
		if len(line) > maxRefusalLine {
			line = strings.ToValidUTF8(line[:maxRefusalLine], "")
		}
		lines = append(lines, line)
	}
	if len(refused) > maxRefusalLines {
		lines[maxRefusalLines-1] = fmt.Sprintf("and %d more", len(refused)-maxRefusalLines+1)
	}
	return strings.Join(lines, "\n")
}

// nack attributes the lines of a peer's NACK to the names that its message carried. Attributing a line costs time in
// proportion to the line, whatever the number of names.
type nack struct {
	// full maps full names, short those without their mesh; the values are the names as in the message.
	full, short map[string]string
}

func newNack(names []string) *nack {
	n := &nack{full: make(map[string]string, len(names)), short: make(map[string]string, len(names))}
	for _, name := range names {
		n.full[name] = name
		at := strings.LastIndexByte(name, '.')
		if at < 1 {
			continue // no such name arrives or is made here
		}
		if short := strings.TrimSuffix(name[:at], "."); short != "" && n.short[short] == "" {
			n.short[short] = name
		}
	}
	return n
}

// attribute returns the name that a line is about, or "" if there is none, and its reason. Our own lines begin with the
// name; those of other implementations contain it, or the part before the mesh, as a word.
func (n *nack) attribute(line string) (name, reason string) {
	if before, after, ok := strings.Cut(line, ": "); ok && n.full[before] != "" {
		return before, after
	}
	for word := range strings.FieldsFuncSeq(line, notInWords) {
		if word = strings.Trim(word, ".-_"); word == "" {
			continue
		}
		for _, known := range []string{n.full[word], n.full[word+"."], n.short[word]} {
			if known != "" {
				return known, line
			}
		}
	}
	return "", line
}

// notInWords reports whether a character ends a name in a sentence.
func notInWords(c rune) bool {
	return c != '.' && c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// parseRefusals reads a peer's NACK of a message that carried names. A line without a name may be about any resource
// that no line names: it is unknown whether the peer accepted those. about completes a refusal with what is known of
// its resource.
func parseRefusals(scope tracker.Refusal, message string, names []string,
	about func(*tracker.Refusal)) []tracker.Refusal {
	n := newNack(names)
	byName := map[string]int{}
	var out []tracker.Refusal
	read := 0
	for line := range strings.SplitSeq(message, "\n") {
		if read++; read > maxRefusalLines {
			break
		}
		if len(line) > maxRefusalLine {
			line = strings.ToValidUTF8(line[:maxRefusalLine], "")
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, reason := n.attribute(line)
		if at, seen := byName[name]; seen {
			if len(out[at].Reason) < maxRefusalLine {
				out[at].Reason += "; " + reason
			}
			continue
		}
		byName[name] = len(out)
		r := scope
		r.Name, r.Reason = name, reason
		about(&r)
		out = append(out, r)
	}
	if len(out) == 0 {
		byName[""] = 0
		out = append(out, scope)
		out[0].Reason = "it gave no reason"
	}
	at, some := byName[""]
	if !some || len(names) == 0 {
		return out
	}
	unnamed := out[at]
	unnamed.Reason = "it, or what else came with it: " + unnamed.Reason
	return append(slices.Delete(out, at, at+1), spread(unnamed, byName, names, about)...)
}

// spread turns a refusal without a name into one for each of names that is not among others. If none is left, it
// returns the refusal as it is.
func spread(unnamed tracker.Refusal, others map[string]int, names []string,
	about func(*tracker.Refusal)) []tracker.Refusal {
	var out []tracker.Refusal
	for _, name := range names {
		if _, named := others[name]; named || name == "" {
			continue
		}
		others[name] = len(out)
		one := unnamed
		one.Name = name
		about(&one)
		out = append(out, one)
	}
	if len(out) == 0 {
		return []tracker.Refusal{unnamed}
	}
	return out
}
