package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// redacted replaces each secret.
const redacted = "REDACTED"

// scrubber redacts what looks like a secret. It is the second line of defence: the servers' responses contain no
// secrets, but a setting, a log or a policy that a user wrote may.
type scrubber struct{}

// secretForms match secrets in any text. The first group, if there is one, is kept.
var secretForms = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`causeway-join:v\d+:[A-Za-z0-9_=.-]+`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*`), // a token: JWT
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9+/_=.~-]{8,}`),
	regexp.MustCompile(`(?i)(\b(?:password|passphrase|secret|token|api-?key)\b["']?\s*[=:]\s*["']?)[^\s"',;}{\[\]]{4,}`),
	regexp.MustCompile(`(://[^/\s:@"]*:)[^/\s@"]+@`), // the password in a URL
}

// secretField matches the names of fields and settings whose values are secret.
var secretField = regexp.MustCompile(`(?i)(password|passphrase|secret|token|private_?key|client_?key|authorization|credential|api_?key|^key$|^join$|^inline(_?string)?$)`)

// notSecret matches the exceptions from secretField: names of values that are a location or a lifetime.
var notSecret = regexp.MustCompile(`(?i)(file|lifetime|credentials|require|url|issuer|type)$`)

// text redacts what looks like a secret in any text, including text whose line ends are written as \n in JSON.
func (scrubber) text(raw []byte) []byte {
	for _, form := range secretForms {
		with := redacted
		if form.NumSubexp() > 0 {
			with = "${1}" + redacted
			if strings.HasSuffix(form.String(), "@") {
				with += "@"
			}
		}
		raw = form.ReplaceAll(raw, []byte(with))
	}
	return raw
}

// document redacts the values of fields whose names mark them as secret, and indents the document.
func (s scrubber) document(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.MarshalIndent(s.value("", v), "", "  ")
}

func (s scrubber) value(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for field, inner := range v {
			v[field] = s.value(field, inner)
		}
		return v
	case []any:
		for i := range v {
			v[i] = s.value(name, v[i])
		}
		return v
	case string:
		if secretName(name) && v != "" {
			return redacted
		}
		return string(s.text([]byte(v)))
	}
	return v
}

func secretName(name string) bool {
	plain := strings.ReplaceAll(name, "-", "_")
	return secretField.MatchString(plain) && !notSecret.MatchString(plain)
}

// settings redacts the values of secret settings in a YAML file, line by line, so that comments stay.
func (s scrubber) settings(raw []byte) []byte {
	lines := strings.Split(string(raw), "\n")
	for i, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(value) != "" && secretName(strings.Trim(strings.TrimSpace(name), `"'# `)) {
			lines[i] = name + ": " + redacted
		}
	}
	return []byte(strings.Join(lines, "\n"))
}
