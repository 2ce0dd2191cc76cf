// Package api owns the HTTP API that both servers serve, and its Go client: paths, shapes and errors of the API that
// existing tools speak, over any store. It decides who may write what where; what a resource means is the model's, and
// endpoints that ask how policies act (inspect, svid) are added by the servers that own the answers.
package api
