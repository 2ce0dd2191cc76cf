package kds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/kds/tracker"
)

// A peer's NACK is read up to so many lines, and each up to so many bytes. Ours has no more: they are what its sender understands.
const (
	maxRefusalLines = 1000
	maxRefusalLine  = 4096
)

// refusalMessage is the text of a NACK: one line for each resource, as far as the peer reads.
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

// nack attributes the lines of a peer's NACK to the names that its message carried. It is asked once for each line, and costs what
// the line does, however many names there are.
type nack struct {
	// full are the names, short those without their mesh; what is looked up is the name as the message has it.
	full, short map[string]string
}

func newNack(names []string) *nack {
	n := &nack{full: make(map[string]string, len(names)), short: make(map[string]string, len(names))}
	for _, name := range names {
		n.full[name] = name
		at := strings.LastIndexByte(name, '.')
		if at < 1 {
			continue // nothing that arrives is so, and nothing that we make
		}
		if short := strings.TrimSuffix(name[:at], "."); short != "" && n.short[short] == "" {
			n.short[short] = name
		}
	}
	return n
}

// attribute returns the name that a line speaks of, empty for none, and what it says. Our own lines begin with the name; other peers'
// have it, or the part before the mesh, as a word somewhere.
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

// notInWords is what ends a name in a sentence.
func notInWords(c rune) bool {
	return c != '.' && c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// parseRefusals reads a peer's NACK of a message that carried names. What it says without a name may be about any that it does not name:
// nobody knows of those that they were taken. About completes a refusal with what is known of its resource.
func parseRefusals(scope tracker.Refusal, message string, names []string, about func(*tracker.Refusal)) []tracker.Refusal {
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

// spread makes a refusal without a name one of each of names that is not among those of others. One that nothing is left for is kept
// as it is.
func spread(unnamed tracker.Refusal, others map[string]int, names []string, about func(*tracker.Refusal)) []tracker.Refusal {
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
