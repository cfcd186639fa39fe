// Package boundtoken judges callers that authenticate with a service-account token which is bound to a pod. In go the user that an API server
// verified, and the pod as it is now; out comes the caller, or the reason why it gets no token of its own. It verifies no token, and reads nothing.
package boundtoken
