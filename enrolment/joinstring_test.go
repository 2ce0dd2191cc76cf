package enrolment

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

// aJoinString returns a join string as the global creates it.
func aJoinString() *JoinString {
	return &JoinString{
		Zone: "zone-3", Addresses: []string{"10.0.0.1:5685", "[fd00::1]:5685", "global.example:5685"},
		CASHA256: strings.Repeat("0123456789abcdef", 4), Token: "eyJhbGciOiJFZERTQSJ9.eyJ6b25lIjoiem9uZS0zIn0.c2lnbmF0dXJl",
	}
}

func TestJoinStringsComeBack(t *testing.T) {
	t.Parallel()
	text, err := aJoinString().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "causeway-join:v1:") || strings.ContainsAny(text, " \n+/=") {
		t.Errorf("not one word that a shell leaves alone: %s", text)
	}
	got, err := ParseJoinString("\n " + text + "\r\n")
	if err != nil {
		t.Fatal(err)
	}
	want := aJoinString()
	if got.Zone != want.Zone || strings.Join(got.Addresses, " ") != strings.Join(want.Addresses, " ") ||
		got.CASHA256 != want.CASHA256 || got.Token != want.Token {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestNoJoinStrings checks that other texts are refused, and that the error quotes nothing of them.
func TestNoJoinStrings(t *testing.T) {
	t.Parallel()
	good, err := aJoinString().Encode()
	if err != nil {
		t.Fatal(err)
	}
	of := func(json string) string { return joinPrefix + base64.RawURLEncoding.EncodeToString([]byte(json)) }
	changed := func(change func(*JoinString)) string {
		j := aJoinString()
		change(j)
		text, err := j.Encode()
		if err == nil {
			t.Errorf("%+v was encoded", j)
		}
		return text
	}
	for name, text := range map[string]string{
		"empty":             "",
		"a word":            "zone-3",
		"no version":        strings.Replace(good, ":v1:", ":", 1),
		"version zero":      strings.Replace(good, ":v1:", ":v0:", 1),
		"odd version":       strings.Replace(good, ":v1:", ":v+1:", 1),
		"cut":               good[:len(good)-7],
		"two":               good + good,
		"standard base64":   joinPrefix + "++//",
		"very long":         good + strings.Repeat("A", 10_000),
		"no JSON":           of("zone-3"),
		"null":              of("null"),
		"more than JSON":    of(`{"zone":"zone-3"} {}`),
		"other types":       of(`{"zone":3}`),
		"1 MiB":             joinPrefix + strings.Repeat("A", 1<<20),
		"deep":              of(strings.Repeat("[", 5_000)),
		"deep inside":       of(`{"addresses":` + strings.Repeat("[", 5_000)),
		"no zone":           changed(func(j *JoinString) { j.Zone = "" }),
		"a path for a zone": changed(func(j *JoinString) { j.Zone = "../zone" }),
		"no address":        changed(func(j *JoinString) { j.Addresses = nil }),
		"many addresses":    changed(func(j *JoinString) { j.Addresses = make([]string, 100) }),
		"no port":           changed(func(j *JoinString) { j.Addresses = []string{"10.0.0.1"} }),
		"a port of zero":    changed(func(j *JoinString) { j.Addresses = []string{"10.0.0.1:0"} }),
		"a URL":             changed(func(j *JoinString) { j.Addresses = []string{"http://10.0.0.1:5685/x"} }),
		"a host with space": changed(func(j *JoinString) { j.Addresses = []string{"a b:5685"} }),
		"a short CA":        changed(func(j *JoinString) { j.CASHA256 = "00ff" }),
		"no token":          changed(func(j *JoinString) { j.Token = "" }),
		"lines for a token": changed(func(j *JoinString) { j.Token = "a\nb" }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseJoinString(text)
			if !errors.Is(err, ErrJoinString) {
				t.Fatalf("%v is no ErrJoinString", err)
			}
			if strings.Contains(err.Error(), "eyJ") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

// FuzzJoinString checks that whatever parses can be encoded again without a change of meaning.
func FuzzJoinString(f *testing.F) {
	good, err := aJoinString().Encode()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{good, "", joinPrefix, joinPrefix + "e30", good[:len(good)/2], "causeway-join:v2:e30"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		j, err := ParseJoinString(text)
		if err != nil {
			if !errors.Is(err, ErrJoinString) && !errors.Is(err, ErrJoinFormat) {
				t.Fatalf("%v is neither ErrJoinString nor ErrJoinFormat", err)
			}
			return
		}
		again, err := j.Encode()
		if err != nil {
			t.Fatalf("%+v was taken and cannot be written: %v", j, err)
		}
		back, err := ParseJoinString(again)
		if err != nil || back.Zone != j.Zone || back.Token != j.Token || back.CASHA256 != j.CASHA256 ||
			strings.Join(back.Addresses, " ") != strings.Join(j.Addresses, " ") {
			t.Fatalf("%+v came back as %+v, %v", j, back, err)
		}
	})
}
