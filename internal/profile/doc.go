// Package profile decides what a ServiceAccountProfile does to the pods of its service account. In go the profile, the template that it
// refers to, and a pod; out come the pod with what was filled in, as a JSON patch too (RFC 6902), or the reason why it is refused. It makes
// no requests, and changes none of its arguments.
package profile
