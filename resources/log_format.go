package resources

import (
	"fmt"
	"regexp"
	"strings"
)

// maxFormatBytes bounds one format of an access log.
const maxFormatBytes = 4096

// What a command of a log format takes in parentheses.
const (
	argNone = iota
	argTime
	argHeader
	argKey
)

// logCommands lists the commands that a format may contain: those of Envoy that need no more than the request or
// connection. A proxy rejects a listener whose log format it cannot read, so no other command is accepted.
var logCommands = compileCommands()

func compileCommands() map[string]int {
	out := map[string]int{
		"START_TIME": argTime, "REQ": argHeader, "RESP": argHeader, "TRAILER": argHeader, "DYNAMIC_METADATA": argKey,
		"FILTER_STATE": argKey,
	}
	for _, name := range strings.Fields(`
		BYTES_RECEIVED BYTES_SENT CONNECTION_ID CONNECTION_TERMINATION_DETAILS DOWNSTREAM_DIRECT_REMOTE_ADDRESS
		DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_LOCAL_PORT
		DOWNSTREAM_LOCAL_SUBJECT DOWNSTREAM_LOCAL_URI_SAN DOWNSTREAM_PEER_FINGERPRINT_256 DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_SERIAL
		DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_REMOTE_ADDRESS DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT DOWNSTREAM_REMOTE_PORT
		DOWNSTREAM_TLS_CIPHER DOWNSTREAM_TLS_SESSION_ID DOWNSTREAM_TLS_VERSION DOWNSTREAM_TRANSPORT_FAILURE_REASON DURATION GRPC_STATUS
		GRPC_STATUS_NUMBER HOSTNAME PROTOCOL REQUEST_DURATION REQUEST_TX_DURATION REQUESTED_SERVER_NAME RESPONSE_CODE RESPONSE_CODE_DETAILS
		RESPONSE_DURATION RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_TX_DURATION ROUTE_NAME STREAM_ID UPSTREAM_CLUSTER UPSTREAM_HOST
		UPSTREAM_LOCAL_ADDRESS UPSTREAM_REMOTE_ADDRESS UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_TLS_CIPHER UPSTREAM_TLS_VERSION
		UPSTREAM_TRANSPORT_FAILURE_REASON
		KUMA_MESH KUMA_ZONE KUMA_SOURCE_SERVICE KUMA_DESTINATION_SERVICE KUMA_SOURCE_ADDRESS KUMA_SOURCE_ADDRESS_WITHOUT_PORT KUMA_TRAFFIC_DIRECTION`) {
		out[name] = argNone
	}
	return out
}

var (
	logCommand  = regexp.MustCompile(`^%([A-Z0-9_]+)(?:\(([^()]*)\))?(?::[0-9]{1,4})?%`)
	logArgument = map[int]*regexp.Regexp{
		argTime:   regexp.MustCompile(`^(?:[-_:./ ,A-Za-z0-9]|%[A-Za-z]|%[1-9][a-z])*$`),
		argHeader: regexp.MustCompile(`^:?[-_A-Za-z0-9]+(?:\?:?[-_A-Za-z0-9]+)?$`),
		argKey:    regexp.MustCompile(`^[-_.:/A-Za-z0-9]+$`),
	}
)

// LogCommands lists the valid commands of access log formats, unsorted.
func LogCommands() []string {
	var out []string
	for name := range logCommands {
		out = append(out, name)
	}
	return out
}

// CheckLogFormat returns the problem of an access log format, or nil.
func CheckLogFormat(format string) error {
	if len(format) > maxFormatBytes {
		return fmt.Errorf("want at most %d bytes, got %d", maxFormatBytes, len(format))
	}
	for rest := format; ; {
		at := strings.IndexByte(rest, '%')
		if at < 0 {
			return nil
		}
		rest = rest[at:]
		if strings.HasPrefix(rest, "%%") {
			rest = rest[2:]
			continue
		}
		found := logCommand.FindStringSubmatch(rest)
		if found == nil {
			return fmt.Errorf("%q is not a command: write %%COMMAND%% or %%COMMAND(ARGUMENT)%%, and %%%% for a percent sign", shorten(rest))
		}
		takes, known := logCommands[found[1]]
		if !known {
			return fmt.Errorf("%q is not a command that proxies are given%s", found[1], Suggestion(found[1], LogCommands()))
		}
		argument, has := found[2], strings.Contains(found[0], "(")
		switch {
		case takes == argNone && has:
			return fmt.Errorf("%%%s%% takes no argument", found[1])
		case takes != argNone && takes != argTime && !has, has && !logArgument[takes].MatchString(argument):
			return fmt.Errorf("%q is not an argument of %%%s()%%", shorten(argument), found[1])
		}
		rest = rest[len(found[0]):]
	}
}
