// Package accesslog takes what proxies report of the requests and connections that they judged, keeps a summary of it in
// bounded memory, and answers from it: who would be denied if shadow denials were enforced, and which permission would allow
// what was seen. It changes no policy, and nothing that it holds outlives the process.
package accesslog
