package explain

import (
	"encoding/xml"
	"fmt"
	"io"
)

// The elements of a JUnit report that readers agree on.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
		Out      string      `xml:"system-out,omitempty"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Line    int           `xml:"line,attr,omitempty"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report as JUnit XML: one suite for each file, with the coverage in the output of the last.
func (r *Report) WriteJUnit(w io.Writer) error {
	out := junitSuites{Tests: len(r.Cases), Failures: r.Failed}
	for i := range r.Cases {
		c := &r.Cases[i]
		if n := len(out.Suites); n == 0 || out.Suites[n-1].Name != c.File {
			out.Suites = append(out.Suites, junitSuite{Name: c.File})
		}
		suite := &out.Suites[len(out.Suites)-1]
		one := junitCase{Name: c.Name, Class: c.To, File: c.File, Line: c.Line}
		if c.Failure != "" {
			one.Failure = &junitFailure{Message: c.Failure, Text: fmt.Sprintf("%s:%d: want %s, got %s", c.File, c.Line,
				c.Want, c.Got)}
			suite.Failures++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, one)
	}
	if n := len(out.Suites); n > 0 {
		out.Suites[n-1].Out = r.Coverage.String()
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
