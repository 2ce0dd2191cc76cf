package explain

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Limits of one file of expectations.
const (
	// MaxTestFileBytes is the largest file that ReadTests reads.
	MaxTestFileBytes = 4 << 20
	// maxCases bounds the cases of one file, after its lists are multiplied out.
	maxCases = 100_000
)

// TestFile is a file of expectations about permissions.
type TestFile struct {
	// File is the name of the file, for reports.
	File string `yaml:"-"`
	// Destinations are inbounds that no resource describes, by the name that tests use in To.
	Destinations map[string]Destination `yaml:"destinations"`
	// Identities are short names for SPIFFE IDs, for use in From.
	Identities map[string]string `yaml:"identities"`
	Tests      []Test            `yaml:"tests"`
}

// Destination stands in for a Dataplane.
type Destination struct {
	// Mesh is "default" when empty.
	Mesh      string               `yaml:"mesh"`
	Zone      string               `yaml:"zone"`
	Namespace string               `yaml:"namespace"`
	Labels    map[string]string    `yaml:"labels"`
	Inbounds  []DestinationInbound `yaml:"inbounds"`
}

// DestinationInbound is one inbound of a Destination.
type DestinationInbound struct {
	Name string `yaml:"name"`
	Port uint32 `yaml:"port"`
	// Protocol is http, http2, grpc or tcp. It is required.
	Protocol string            `yaml:"protocol"`
	Tags     map[string]string `yaml:"tags"`
}

// Test is one expectation, or one for each combination of From, Method and Path.
type Test struct {
	Name      string `yaml:"name"`
	Mesh      string `yaml:"mesh"`
	Zone      string `yaml:"zone"`
	Namespace string `yaml:"namespace"`
	// To is a name under Destinations, or any value of Query.To.
	To      string `yaml:"to"`
	Inbound string `yaml:"inbound"`
	From    Texts  `yaml:"from"`
	Method  Texts  `yaml:"method"`
	Path    Texts  `yaml:"path"`
	SNI     string `yaml:"sni"`
	// Headers are those of every request of the test.
	Headers map[string]string `yaml:"headers"`
	// Expect is Allow or Deny. By, if set, is the decider that the test requires: a policy's name or KRI, or "default".
	Expect string `yaml:"expect"`
	By     string `yaml:"by"`
	// Shadow, if set, is the verdict if each allowWithShadowDeny were a deny.
	Shadow string `yaml:"shadow"`

	line int
}

// Texts is a string or a list of strings.
type Texts []string

// UnmarshalYAML accepts both forms.
func (s *Texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*s = Texts{n.Value}
		return nil
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("line %d: the list is empty: leave it out, or give one value", n.Line)
	}
	*s = list
	return nil
}

// ReadTests reads one YAML document of expectations. Unknown fields, an expectation without a verdict, and one that
// yields no case are errors that name the file and the line.
func ReadTests(file string, data []byte) (*TestFile, error) {
	if len(data) > MaxTestFileBytes {
		return nil, fmt.Errorf("%s: is %d bytes long, more than %d: split it", file, len(data), MaxTestFileBytes)
	}
	f := &TestFile{}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := dec.Decode(&TestFile{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: has more than one document: put all tests under one `tests`", file)
	}
	f.File = file
	f.findLines(data)
	return f, f.check()
}

// findLines records where each test begins.
func (f *TestFile) findLines(data []byte) {
	var places struct {
		Tests []yaml.Node `yaml:"tests"`
	}
	if yaml.Unmarshal(data, &places) != nil {
		return // it decoded before
	}
	for i := range min(len(places.Tests), len(f.Tests)) {
		f.Tests[i].line = places.Tests[i].Line
	}
}

func (f *TestFile) check() error {
	if len(f.Tests) == 0 {
		return fmt.Errorf("%s: has no tests: list them under `tests`", f.File)
	}
	cases := 0
	for i := range f.Tests {
		t := &f.Tests[i]
		if reason := t.problem(); reason != "" {
			return fmt.Errorf("%s:%d: tests[%d]: %s", f.File, t.line, i, reason)
		}
		cases += max(len(t.From), 1) * max(len(t.Method), 1) * max(len(t.Path), 1)
	}
	if cases > maxCases {
		return fmt.Errorf("%s: comes to %d cases, more than %d: split it", f.File, cases, maxCases)
	}
	for name, d := range f.Destinations {
		if reason := d.problem(); reason != "" {
			return fmt.Errorf("%s: destinations.%s: %s", f.File, name, reason)
		}
	}
	return nil
}

func (t *Test) problem() string {
	switch {
	case t.Expect != Allow && t.Expect != Deny:
		return fmt.Sprintf("expect: want %s or %s, got %q", Allow, Deny, t.Expect)
	case t.Shadow != "" && t.Shadow != Allow && t.Shadow != Deny:
		return fmt.Sprintf("shadow: want %s or %s, got %q", Allow, Deny, t.Shadow)
	case t.To == "":
		return "to: is required: the destination"
	case len(t.From) == 0:
		return "from: is required: a SPIFFE ID, or a name under `identities`"
	}
	return ""
}

func (d *Destination) problem() string {
	if len(d.Inbounds) == 0 {
		return "inbounds: is required: give at least one, with name, port and protocol"
	}
	for i, in := range d.Inbounds {
		switch in.Protocol {
		case "http", "http2", "grpc", "tcp":
		default:
			return fmt.Sprintf("inbounds[%d].protocol: want http, http2, grpc or tcp, got %q", i, in.Protocol)
		}
	}
	return ""
}
