package zone_test

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// reader is a small model of how one kind of application derives the path that it serves from a request target, written
// from the documentation. It returns each path that such an application may serve in one of its usual settings, and
// none if it refuses.
type reader struct {
	name string
	read func(target string) []string
}

// readers are the columns of the table in docs/permissions.md.
var readers = []reader{
	{"Tomcat", func(s string) []string { return each(dropParameters(cutQuery(s)), decode, resolve) }},
	{"Jetty", func(s string) []string {
		return append(each(dropParameters(cutQuery(s)), decodeWide, resolve),
			each(cutQuery(s), decodeWide, dropParameters, resolve)...)
	}},
	{"Spring MVC 5", func(s string) []string {
		return withoutExtension(withoutSlash(each(dropParameters(cutQuery(s)), decode, dropParameters, resolve,
			trimSegments)))
	}},
	{"cut at ;", func(s string) []string {
		return append(each(cut(cutQuery(s), ";"), decode, resolve),
			each(cutQuery(s), decode, func(s string) string { return cut(s, ";") }, resolve)...)
	}},
	{"IIS", func(s string) []string {
		return each(cutQuery(s), decodeWide, decodeWide, overlong, wide, backslashes, windows, resolve, strings.ToLower)
	}},
	{"Go", func(s string) []string { return each(cutQuery(s), decode, resolve) }},
	{"Express", func(s string) []string {
		plain := each(cut(cutQuery(s), "#"), strings.ToLower)
		return withoutSlash(append(plain, each(cut(cutQuery(s), "#"), decode, backslashes, dropControls, resolve,
			strings.ToLower)...))
	}},
	{"nginx", func(s string) []string {
		return append(each(cut(cutQuery(s), "#"), decode, resolve),
			each(cutQuery(s), decode, cutQuery, fragment, decode, resolve)...)
	}},
	{"WSGI", func(s string) []string {
		return withoutSlash(each(cutQuery(s), decode, func(s string) string { return strings.TrimSuffix(s, "\n") }))
	}},
	{"PHP", func(s string) []string {
		return withoutSlash(append(each(cutQuery(s), decode, cutNUL, strings.TrimSpace, resolve),
			each(cutQuery(s), decode, cutQuery, fragment, resolve)...))
	}},
	{"Rails", func(s string) []string {
		return withoutExtension(withoutSlash(each(cutQuery(s), mergeSlashes, decode)))
	}},
	{"httpd", func(s string) []string {
		return each(cutQuery(s), decode, backslashes, resolve, func(s string) string { return strings.TrimSuffix(s, "\n") })
	}},
	{"decodes twice", func(s string) []string {
		return append(each(cutQuery(s), decode, decode, backslashes, cutNUL, resolve),
			each(cutQuery(s), decode, decode, dropParameters, cutQuery, resolve)...)
	}},
	{"lenient UTF-8", func(s string) []string {
		return append(each(cutQuery(s), decode, overlong, dropInvalid, resolve),
			each(cutQuery(s), decode, dropInvalid, wide, resolve)...)
	}},
	{"equalsIgnoreCase", func(s string) []string { return each(dropParameters(cutQuery(s)), decode, resolve, foldJava) }},
}

// each applies the steps in order. A step that returns "" refuses.
func each(s string, steps ...func(string) string) []string {
	for _, step := range steps {
		if s = step(s); s == "" {
			return nil
		}
	}
	return []string{s}
}

func cut(s, at string) string      { before, _, _ := strings.Cut(s, at); return before }
func cutQuery(s string) string     { return cut(s, "?") }
func fragment(s string) string     { return cut(s, "#") }
func cutNUL(s string) string       { return cut(s, "\x00") }
func backslashes(s string) string  { return strings.ReplaceAll(s, `\`, "/") }
func mergeSlashes(s string) string { return regexp.MustCompile(`/{2,}`).ReplaceAllString(s, "/") }
func dropControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, s)
}

var parameters = regexp.MustCompile(`;[^/]*`)

func dropParameters(s string) string { return parameters.ReplaceAllString(s, "") }

var escape = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

// decode resolves escapes once and leaves invalid ones unchanged.
func decode(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		code, _ := strconv.ParseUint(e[1:], 16, 8)
		return string([]byte{byte(code)})
	})
}

var wideEscape = regexp.MustCompile(`%[uU][0-9a-fA-F]{4}`)

// decodeWide is decode with support for `%u0041`.
func decodeWide(s string) string {
	return decode(wideEscape.ReplaceAllStringFunc(s, func(e string) string {
		code, _ := strconv.ParseUint(e[2:], 16, 16)
		return string(rune(code))
	}))
}

// resolve merges slashes and removes dot segments, as all file servers do.
func resolve(s string) string {
	var out []string
	segments := strings.Split(mergeSlashes(s), "/")
	for i, segment := range segments {
		switch segment {
		case ".", "..":
			if segment == ".." && len(out) > 1 {
				out = out[:len(out)-1]
			}
			if i == len(segments)-1 {
				out = append(out, "")
			}
		default:
			out = append(out, segment)
		}
	}
	return strings.Join(out, "/")
}

// fileStream matches the stream of a file, `name:stream:$TYPE`.
var fileStream = regexp.MustCompile(`(:[^:]*)?:\$.*`)

// windows drops spaces and dots at the end of segments, and names of file streams.
func windows(s string) string {
	segments := strings.Split(s, "/")
	for i, segment := range segments {
		if segment != "." && segment != ".." {
			segments[i] = strings.TrimRight(fileStream.ReplaceAllString(segment, ""), ". \u00a0")
		}
	}
	return strings.Join(segments, "/")
}

func trimSegments(s string) string {
	segments := strings.Split(s, "/")
	for i, segment := range segments {
		segments[i] = strings.TrimSpace(segment)
	}
	return strings.Join(segments, "/")
}

// overlong decodes UTF-8, including encodings that are longer than necessary.
func overlong(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case i+1 < len(s) && (s[i] == 0xc0 || s[i] == 0xc1):
			out.WriteByte(s[i]&3<<6 | s[i+1]&0x3f)
			i++
		case i+2 < len(s) && s[i] == 0xe0 && s[i+1] < 0xa0 && s[i+1] >= 0x80:
			out.WriteByte(s[i+1]&1<<6 | s[i+2]&0x3f)
			i += 2
		default:
			out.WriteByte(s[i])
		}
	}
	return out.String()
}

// wide maps full-width forms, and characters that resemble slashes and dots (best fit, NFKC), to ASCII.
func wide(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 0xff01 <= r && r <= 0xff5e:
			return r - 0xfee0
		case r == '∕' || r == '⁄':
			return '/'
		case r == '․':
			return '.'
		}
		return r
	}, s)
}

// dropInvalid drops bytes that are not UTF-8, and invisible characters.
func dropInvalid(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r == 0xad || r == 0x200b || r == 0xfeff {
			return -1
		}
		return r
	}, s)
}

// foldJava folds case as String.equalsIgnoreCase does, which treats İ, ı, ſ and the Kelvin sign as ASCII letters.
func foldJava(s string) string {
	return strings.ToLower(strings.NewReplacer("ı", "i", "İ", "i", "ſ", "s", "\u212a", "k").Replace(s))
}

// withoutSlash adds the paths without a trailing slash, for applications that treat both as one.
func withoutSlash(paths []string) []string {
	for _, p := range paths {
		if short := strings.TrimRight(p, "/"); short != p && short != "" {
			paths = append(paths, short)
		}
	}
	return paths
}

// withoutExtension adds the paths without a trailing format, such as `.json`.
func withoutExtension(paths []string) []string {
	for _, p := range paths {
		if m := formatName.FindStringIndex(p); m != nil {
			paths = append(paths, p[:m[0]])
		}
	}
	return paths
}

var formatName = regexp.MustCompile(`\.[a-zA-Z]+$`)

// servesBeneath reports whether the reader serves the folder, or a path beneath it, for the target.
func (r reader) servesBeneath(target, folder string) bool {
	for _, p := range r.read(target) {
		if p == folder || strings.HasPrefix(p, folder+"/") {
			return true
		}
	}
	return false
}

// servesExactly is servesBeneath for the path itself.
func (r reader) servesExactly(target, path string) bool {
	for _, p := range r.read(target) {
		if p == path {
			return true
		}
	}
	return false
}
