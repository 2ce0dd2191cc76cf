package resources

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// confValues lists the valid values of the fields of a conf, for types whose confs are stored with all fields. Paths
// are in lower case, with [] after a list. A field with another value has no effect on proxies.
var confValues = map[Type]map[string]valueKind{
	TypeMeshRetry: merged(map[string]valueKind{"tcp.maxConnectAttempt": repeats}, retryValues("http"), retryValues("grpc")),
	TypeMeshCircuitBreaker: merged(map[string]valueKind{
		"connectionLimits.maxConnectionPools": count, "connectionLimits.maxConnections": count,
		"connectionLimits.maxPendingRequests": count,
		"connectionLimits.maxRetries":         count, "connectionLimits.maxRequests": count,
		"outlierDetection.disabled": flag, "outlierDetection.splitExternalAndLocalErrors": flag,
		"outlierDetection.interval": sweeps, "outlierDetection.baseEjectionTime": period,
		"outlierDetection.maxEjectionTime":    period,
		"outlierDetection.maxEjectionPercent": wholePercentage, "outlierDetection.healthyPanicThreshold": percentage,
		"outlierDetection.detectors.totalFailures.consecutive":           count,
		"outlierDetection.detectors.gatewayFailures.consecutive":         count,
		"outlierDetection.detectors.localOriginFailures.consecutive":     count,
		"outlierDetection.detectors.successRate.minimumHosts":            count,
		"outlierDetection.detectors.successRate.requestVolume":           count,
		"outlierDetection.detectors.successRate.standardDeviationFactor": quantity,
		"outlierDetection.detectors.failurePercentage.minimumHosts":      count,
		"outlierDetection.detectors.failurePercentage.requestVolume":     count,
		"outlierDetection.detectors.failurePercentage.threshold":         wholePercentage,
	}),
	TypeMeshHealthCheck: merged(healthValues),
	TypeMeshHTTPRoute: {
		"matches[].path.type":      among(MatchExact, "PathPrefix", MatchRegularExpression),
		"matches[].method":         among(append(routeMethods, "")...),
		"matches[].headers[].type": among(headerMatch...), "matches[].queryparams[].type": among(queryMatch...),
		"default.filters[].type": among(filterTypes...),
	},
}

// retryValues returns the values of the retry fields of a protocol.
func retryValues(protocol string) map[string]valueKind {
	out := map[string]valueKind{}
	for name, kind := range map[string]valueKind{
		"numRetries": repeats, "perTryTimeout": duration, "backOff.baseInterval": period, "backOff.maxInterval": period,
		"rateLimitedBackOff.maxInterval": period, "rateLimitedBackOff.resetHeaders[].format": among("Seconds",
			"UnixTimestamp"),
		"rateLimitedBackOff.resetHeaders[].name": texts(MatchableHeader, "the name of a header"),
		"retriableRequestHeaders[].name":         texts(MatchableHeader, "the name of a header"),
		"retriableResponseHeaders[].name":        texts(MatchableHeader, "the name of a header"),
		"hostSelection[].predicate":              among(OmitPreviousHosts, OmitPreviousPriorities, OmitHostsWithTags),
		"hostSelection[].updateFrequency":        positive32,
		"hostSelectionMaxAttempts":               oneOrMore, "retryOn[]": retryCondition,
		"retriableRequestHeaders[].type": among(headerMatch...), "retriableResponseHeaders[].type": among(headerMatch...),
	} {
		out[protocol+"."+name] = kind
	}
	return out
}

func merged(all ...map[string]valueKind) map[string]valueKind {
	out := map[string]valueKind{}
	for _, m := range all {
		for path, kind := range m {
			out[strings.ToLower(path)] = kind
		}
	}
	return out
}

// valueKind returns the problem with the value of a field, as decoded from JSON, or "".
type valueKind func(value any) string

func count(value any) string {
	if n, ok := value.(float64); !ok || n < 0 || n > math.MaxUint32 || n != math.Trunc(n) {
		return "want a whole number of at least 0, got " + written(value)
	}
	return ""
}

func positive(value any) string {
	if problem := count(value); problem != "" || value.(float64) == 0 {
		return "want a whole number of at least 1, got " + written(value)
	}
	return ""
}

// positive32 is a positive whole number that Envoy reads as a signed one of 32 bits.
func positive32(value any) string {
	if problem := positive(value); problem != "" {
		return problem
	}
	if value.(float64) > math.MaxInt32 {
		return fmt.Sprintf("want at most %d, got %s", math.MaxInt32, written(value))
	}
	return ""
}

// percentage accepts a quantity of at most 100, and wholePercentage only a whole number.
func percentage(value any) string {
	if problem := quantity(value); problem != "" {
		return problem
	}
	n, isNumber := value.(float64)
	if text, isText := value.(string); isText && !isNumber {
		n, _ = strconv.ParseFloat(text, 64) // quantity has read it
	}
	if n > 100 {
		return "want a percentage from 0 to 100, got " + written(value)
	}
	return ""
}

func wholePercentage(value any) string {
	if problem := count(value); problem != "" {
		return problem
	}
	return percentage(value)
}

// quantity accepts a number written as 12 or as "12.5".
func quantity(value any) string {
	n, ok := value.(float64)
	if text, isText := value.(string); isText {
		var err error
		n, err = strconv.ParseFloat(text, 64)
		ok = err == nil
	}
	if !ok || math.IsNaN(n) || n < 0 {
		return "want a number of at least 0, got " + written(value)
	}
	return ""
}

func flag(value any) string {
	if _, ok := value.(bool); !ok {
		return "want true or false, got " + written(value)
	}
	return ""
}

func duration(value any) string {
	text, _ := value.(string)
	if d, err := time.ParseDuration(text); err != nil || d < 0 {
		return "want a duration such as 10s or 1m30s, got " + written(value)
	}
	return ""
}

// period is a duration that Envoy accepts only above 0.
func period(value any) string {
	text, _ := value.(string)
	if d, err := time.ParseDuration(text); err != nil || d < time.Millisecond {
		return "want a duration of at least 1ms, such as 10s or 1m30s, got " + written(value)
	}
	return ""
}

// among accepts the given names; an empty one among them stands for the default.
func among(names ...string) valueKind {
	return func(value any) string {
		if text, ok := value.(string); ok && slices.Contains(names, text) {
			return ""
		}
		return fmt.Sprintf("want one of %s, got %s", strings.Join(slices.DeleteFunc(slices.Clone(names),
			func(s string) bool { return s == "" }), ", "), written(value))
	}
}

func retryCondition(value any) string {
	if text, ok := value.(string); ok && RetryOn(text) != (RetryCondition{}) {
		return ""
	}
	return fmt.Sprintf("want a status code in quotes, HttpMethod and a method, or one of %s, got %s",
		strings.Join(retryNames, ", "), written(value))
}

// written formats a value for a message.
func written(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return shorten(string(raw))
}

// RetryCondition is the meaning of one item of a MeshRetry's `retryOn`. One of its fields is set.
type RetryCondition struct {
	// Name is Envoy's name of a condition.
	Name string
	// Code is a status code of responses, Method a method of requests.
	Code   uint32
	Method string
}

// retryNames are the conditions by name, as users write them. Letters of either case and dashes are the same to
// RetryOn.
var retryNames = []string{
	"5xx", "GatewayError", "Reset", "Retriable4xx", "ConnectFailure", "EnvoyRatelimited", "RefusedStream",
	"Http3PostConnectFailure", "ResetBeforeRequest",
	"Canceled", "DeadlineExceeded", "Internal", "ResourceExhausted", "Unavailable",
}

// envoyRetryNames are Envoy's names, in the order of retryNames.
var envoyRetryNames = []string{
	"5xx", "gateway-error", "reset", "retriable-4xx", "connect-failure", "envoy-ratelimited", "refused-stream",
	"http3-post-connect-failure", "reset-before-request",
	"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable",
}

// RetryOn parses one item of a MeshRetry's `retryOn`. It returns the zero value for an unknown item.
func RetryOn(item string) RetryCondition {
	if code, err := strconv.ParseUint(item, 10, 16); err == nil {
		if code < 100 || code > 599 {
			return RetryCondition{}
		}
		return RetryCondition{Code: uint32(code)}
	}
	plain := strings.ReplaceAll(item, "-", "")
	if method, ok := strings.CutPrefix(strings.ToUpper(plain), "HTTPMETHOD"); ok {
		if slices.Contains(routeMethods, method) {
			return RetryCondition{Method: method}
		}
		return RetryCondition{}
	}
	for i, name := range retryNames {
		if strings.EqualFold(plain, name) {
			return RetryCondition{Name: envoyRetryNames[i]}
		}
	}
	return RetryCondition{}
}

// checkValues reports the values in a conf, or in a list of confs, that its fields may not have. Field names are
// case-insensitive, as they are in the decoder. An absent field and null are the same.
func checkValues(t Type, conf any, at *fieldPath, report func(at *fieldPath, problem string)) {
	if kinds := confValues[t]; kinds != nil {
		(&valueCheck{kinds, report}).look(conf, "", at)
	}
}

// valueCheck walks the JSON of a conf.
type valueCheck struct {
	kinds  map[string]valueKind
	report func(at *fieldPath, problem string)
}

func (c *valueCheck) look(value any, path string, at *fieldPath) {
	if kind := c.kinds[path]; kind != nil && value != nil {
		if problem := kind(value); problem != "" {
			c.report(at, problem)
		}
		return
	}
	switch v := value.(type) {
	case nil:
	case []any:
		if path != "" {
			path += "[]"
		}
		here := at.item(0)
		for i, item := range v {
			here.index = i
			c.look(item, path, here)
		}
	case map[string]any:
		var room [fewNames]string
		here := at.field("")
		for _, name := range sortedNames(room[:0], v) {
			here.name = name
			c.look(v[name], strings.TrimPrefix(path+"."+strings.ToLower(name), "."), here)
		}
	default:
		if c.kinds[path+"[]"] != nil {
			c.report(at, "want a list, got "+written(value))
		}
	}
}
