// Package api implements the HTTP API that both servers serve, and its Go client: the paths, shapes and errors of the
// API that existing tools use, over any store. It decides who may write which resource on which server. Package
// resources defines the meaning of resources. The servers add the endpoints about the effect of policies (inspect,
// svid).
package api
