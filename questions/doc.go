// Package questions carries questions about proxies from a global to their zones, and the answers back, for both sides.
// A zone calls the global, never the reverse: the global advises the zone that questions wait (enrolment's stream of
// advice), and the zone takes them and answers each in parts. The package does not know what a proxy is, who may ask,
// or how a zone finds the answer.
//
// Neither side trusts the other to keep within bounds. The global holds few questions, for a few seconds each, accepts
// answers only from the zone that it asked, and only as large as it allows. The zone answers few questions at a time and
// a second, whatever the global asks for.
package questions
