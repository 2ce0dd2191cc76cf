// Package accesslog receives the proxies' reports of the requests and connections that they judged and summarizes them
// in bounded memory. From the summary it answers which callers enforced shadow denials would deny, and which permission
// would allow the observed traffic. It changes no policy, and nothing that it holds outlives the process.
package accesslog
